package textfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead: a text is read whole; a file without an end, or a longer one, is an error that names it.
func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(name, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(name); err != nil || string(text) != "one\n" {
		t.Errorf("%q: %v", text, err)
	}
	if _, err := Read("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero: it is longer than 256 MiB") {
		t.Errorf("%v", err)
	}
}
