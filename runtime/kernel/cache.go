package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// A folder keeps what compilers made, under the hash of all that it was made from. Files appear whole or not at all.
type folder struct {
	dir  string
	temp bool // nothing is kept: it goes when the kernel is loaded
}

// openFolder is the user's, or one that goes again where there is none to write to.
func openFolder() (folder, error) {
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, "daqiri-run", "kernels")
		if os.MkdirAll(dir, 0o700) == nil { // 0700: what is in it is loaded
			if probe, err := os.MkdirTemp(dir, "make-"); err == nil {
				_ = os.Remove(probe)
				return folder{dir: dir}, nil
			}
		}
	}
	dir, err := os.MkdirTemp("", "daqiri-run-kernels-")
	return folder{dir: dir, temp: true}, err
}

func (f folder) close() {
	if f.temp {
		_ = os.RemoveAll(f.dir)
	}
}

// key is the hash of what something is made from.
func key(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d %s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func (f folder) path(key, ext string) string { return filepath.Join(f.dir, key+ext) }

// keep puts a file under its name at once.
func (f folder) keep(path string, make func(dir, at string) error) error {
	dir, err := os.MkdirTemp(f.dir, "make-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, filepath.Base(path))
	if err := make(dir, at); err != nil {
		return err
	}
	return os.Rename(at, path)
}
