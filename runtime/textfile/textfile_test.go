package textfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead checks that Read returns a whole file, and an error with the file's name for one that is endless or too long.
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
