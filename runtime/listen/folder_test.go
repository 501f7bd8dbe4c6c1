package listen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFolder checks that a socket folder is private to the user: one that another user owns, that others can write, or that is a link is refused.
func TestFolder(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "user", "sockets")
	for range 2 { // create, then find it
		if err := Folder(dir, 2); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", made, info.Mode(), err)
		}
	}
	for _, c := range []struct {
		want string
		make func(at string) error
	}{
		{"can be written by others (mode 0777)", func(at string) error { return os.Chmod(at, 0o777) }},
		{"can be written by others (mode 0770)", func(at string) error { return os.Chmod(at, 0o770) }},
		{"is not a folder, but a symbolic link", func(at string) error {
			if err := os.Rename(at, at+".away"); err != nil {
				return err
			}
			return os.Symlink(at+".away", at)
		}},
		{"is not a folder, but a file", func(at string) error {
			if err := os.Remove(at); err != nil {
				return err
			}
			return os.WriteFile(at, nil, 0o600)
		}},
		{"is of user 12345, and not yours", func(at string) error { return os.Chown(at, 12345, -1) }},
	} {
		for _, level := range []string{"outer", "inner"} {
			if os.Getuid() != 0 && strings.Contains(c.want, "12345") {
				continue // only root can change the owner
			}
			dir := filepath.Join(t.TempDir(), "outer", "inner")
			if err := Folder(dir, 2); err != nil {
				t.Fatal(err)
			}
			at := dir
			if level == "outer" {
				at = filepath.Dir(dir)
				if strings.Contains(c.want, "a file") {
					continue // not empty
				}
			}
			if err := c.make(at); err != nil {
				t.Fatal(err)
			}
			if err := Folder(dir, 2); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", level, err, c.want)
			}
		}
	}
}
