package session

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

const capturePrefix = "pcap:"

// besides returns the file next to which captures are searched: the configuration, or the script that contains it as a table or text.
func (s *Session) besides() string {
	if _, err := os.Stat(s.cfg.File); err == nil || s.env.Program.Script == "" {
		return s.cfg.File
	}
	return s.env.Program.Script
}

// captureAddress returns the address of an interface that replays a capture: a file that is not in the current folder is searched next to the
// configuration.
func captureAddress(i *spec.Interface, config string) string {
	path, ok := strings.CutPrefix(i.Address, capturePrefix)
	if !ok || i.EngineName() != schema.EnginePCAP || filepath.IsAbs(path) {
		return i.Address
	}
	if _, err := os.Stat(path); err == nil {
		return i.Address
	}
	beside := filepath.Join(filepath.Dir(config), path)
	if _, err := os.Stat(beside); err != nil {
		return i.Address
	}
	return capturePrefix + beside
}

// captureInfo returns the file, or standard input, that an interface replays.
func captureInfo(i *spec.Interface, config string) (os.FileInfo, error) {
	path, ok := strings.CutPrefix(captureAddress(i, config), capturePrefix)
	switch {
	case !ok || i.EngineName() != schema.EnginePCAP:
		return nil, os.ErrNotExist
	case path == "-":
		return os.Stat("/proc/self/fd/0") // the engine's input
	}
	return os.Stat(path)
}

// Replays reports whether the session has interfaces that replay captures, and whether all of them have reached the end. It may be called from any
// goroutine.
func (s *Session) Replays() (some, over bool) {
	s.alive.RLock()
	defer s.alive.RUnlock()
	over = true
	for _, i := range s.ifaces {
		if src, ok := i.source(); ok {
			some, over = true, over && src.Ended
		}
	}
	return some, over
}

// NextTime returns the time of the next event on the virtual clock, or math.MaxInt64. It may be called from any goroutine.
func (s *Session) NextTime() int64 {
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.native == nil {
		return math.MaxInt64
	}
	return s.native.NextTime()
}

// source returns the state of the interface's replay. The caller must hold alive.
func (i *Interface) source() (native.Source, bool) {
	if i.s.native == nil {
		return native.Source{}, false
	}
	return i.native.Source()
}

// sourceError returns an error if a capture could not be read to its end.
func (i *Interface) sourceError() error {
	if src, ok := i.source(); ok && src.Fault != "" {
		return errors.New(src.Fault)
	}
	return nil
}

// Quiet reports whether no packet is in flight: in a queue, before a task, by the session's ledger l, or in an unfinished counted transmission. It
// may be called from any goroutine.
func (s *Session) Quiet(l *stats.Ledger) bool {
	for i := range l.Lines {
		switch x := &l.Lines[i]; x.Kind {
		case stats.Rx, stats.Tx, stats.Wire, stats.Tap:
			if x.Held > 0 {
				return false
			}
		}
	}
	for _, i := range s.ifaces {
		for _, q := range i.TxQueues() {
			if n, endless := q.Remaining(); n > 0 && !endless {
				return false
			}
		}
	}
	return true
}
