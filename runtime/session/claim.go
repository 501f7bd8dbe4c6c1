package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// A claim is a writer's exclusive right to the names with its prefix in a folder: files, indexes and manifest. It is a locked file, DIR/.PREFIX.lock,
// which the kernel unlocks when the process ends, even if it is killed.
type claim struct{ f *os.File }

var errClaimed = errors.New("another run writes files of this prefix there; hint: give each run a folder or prefix of its own")

// claimPrefix claims the prefix in dir; it returns errClaimed if another run has it. If locking is not possible (a missing folder, a file system
// without locks) it returns an empty claim: then only file locks and exclusive creation protect the names.
func claimPrefix(dir, prefix string) (claim, error) {
	path := filepath.Join(dir, "."+prefix+".lock")
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return claim{}, nil
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return claim{}, errClaimed
			}
			return claim{}, nil
		}
		if sameFile(f, path) {
			return claim{f}, nil
		}
		_ = f.Close() // the previous owner removed it after it was opened here
	}
}

func sameFile(f *os.File, path string) bool {
	ours, err := f.Stat()
	named, gone := os.Stat(path)
	return err == nil && gone == nil && os.SameFile(ours, named)
}

// release unlocks and removes the claim's file.
func (c claim) release() {
	if c.f == nil {
		return
	}
	if info, err := c.f.Stat(); err == nil && info.Size() == 0 && sameFile(c.f, c.f.Name()) { // a non-empty file was not created here
		_ = os.Remove(c.f.Name()) // while it is still locked
	}
	_ = c.f.Close()
}

// claimNames claims a writer's prefix in all its folders, for the session: its writers may share a prefix, for example one that failed and its
// replacement. The session's lock must be held.
func (s *Session) claimNames(writer string, o *WriterOptions) error {
	for _, dir := range o.Dirs {
		key := filepath.Join(dir, o.Prefix)
		if i := s.replayedAt(dir, o); i != nil {
			return fmt.Errorf("writer %s: %s is the capture that interface %s replays; hint: write to another folder or prefix",
				writer, strings.TrimPrefix(captureAddress(i, s.besides()), capturePrefix), i.Name)
		}
		if _, ours := s.claims[key]; ours {
			continue
		}
		c, err := claimPrefix(dir, o.Prefix)
		if err != nil {
			return fmt.Errorf("writer %s: %s: %w", writer, key, err)
		}
		s.claims[key] = c
	}
	return nil
}

// replayedAt returns the interface that replays a capture that a writer would replace or append to in dir, or nil.
func (s *Session) replayedAt(dir string, o *WriterOptions) *spec.Interface {
	if !o.Append && !o.Overwrite {
		return nil
	}
	names := []string{o.Prefix + o.Format.Suffix}
	if entries, err := os.ReadDir(dir); o.Format.Each && err == nil {
		for _, e := range entries {
			if index, ok := strings.CutPrefix(e.Name(), o.Prefix+"_"); ok && strings.Trim(index, "0123456789") == "" {
				names = append(names, e.Name())
			}
		}
	}
	for _, i := range s.cfg.Interfaces {
		source, err := captureInfo(i, s.besides())
		if err == nil && slices.ContainsFunc(names, func(name string) bool {
			info, err := os.Stat(filepath.Join(dir, name))
			return err == nil && os.SameFile(info, source)
		}) {
			return i
		}
	}
	return nil
}

// releaseNames releases all prefixes, after the manifests are written. The session's lock must be held.
func (s *Session) releaseNames() {
	for _, c := range s.claims {
		c.release()
	}
	clear(s.claims)
}
