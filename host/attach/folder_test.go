package attach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedFolder checks that a socket in a folder that others can write is refused.
func TestSharedFolder(t *testing.T) {
	base := t.TempDir()
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(base, "a.sock"), Options{}); err == nil || !strings.Contains(err.Error(), "who could replace the socket") {
		t.Errorf("a socket in a folder that others can write: %v", err)
	}
}
