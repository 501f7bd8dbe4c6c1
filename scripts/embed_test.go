package scripts

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// TestNames checks that no two files have the same name, as the program finds them by their names alone.
func TestNames(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*/*.lua", "*/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found += len(paths)
		for _, p := range paths {
			if _, err := fs.Stat(Files, filepath.Base(p)); err != nil {
				t.Error(err)
			}
		}
	}
	if n := len(pathsByName()); n != found {
		t.Errorf("%d names for %d files", n, found)
	}
}
