package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// A folder caches the output of compilers by the hash of all its inputs. Files are created atomically.
type folder struct {
	dir  string
	temp bool // removed once the kernel is loaded
}

// openFolder returns the user's cache folder, or a temporary one if that is not writable.
func openFolder() (folder, error) {
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, "daqiri-run", "kernels")
		if os.MkdirAll(dir, 0o700) == nil { // 0700, because its libraries are loaded
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

// key returns the hash of all inputs.
func key(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d %s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func (f folder) path(key, ext string) string { return filepath.Join(f.dir, key+ext) }

// keep creates a file atomically.
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
