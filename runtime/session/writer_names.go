package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/session/output"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

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
		c, err := output.ClaimPrefix(dir, o.Prefix)
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
		c.Release()
	}
	clear(s.claims)
}
