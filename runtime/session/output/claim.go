package output

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// A Claim is a writer's exclusive right to the names with its prefix in a folder: files, indexes and manifest. It is a locked file, DIR/.PREFIX.lock,
// which the kernel unlocks when the process ends, even if it is killed.
type Claim struct{ f *os.File }

var errClaimed = errors.New("another run writes files of this prefix there; hint: give each run a folder or prefix of its own")

// ClaimPrefix claims the prefix in dir; it returns errClaimed if another run has it. If locking is not possible (a missing folder, a file system
// without locks) it returns an empty claim: then only file locks and exclusive creation protect the names.
func ClaimPrefix(dir, prefix string) (Claim, error) {
	path := filepath.Join(dir, "."+prefix+".lock")
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return Claim{}, nil
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return Claim{}, errClaimed
			}
			return Claim{}, nil
		}
		if sameFile(f, path) {
			return Claim{f}, nil
		}
		_ = f.Close() // the previous owner removed it after it was opened here
	}
}

func sameFile(f *os.File, path string) bool {
	ours, err := f.Stat()
	named, gone := os.Stat(path)
	return err == nil && gone == nil && os.SameFile(ours, named)
}

// Release unlocks and removes the claim's file.
func (c Claim) Release() {
	if c.f == nil {
		return
	}
	if info, err := c.f.Stat(); err == nil && info.Size() == 0 && sameFile(c.f, c.f.Name()) { // a non-empty file was not created here
		_ = os.Remove(c.f.Name()) // while it is still locked
	}
	_ = c.f.Close()
}
