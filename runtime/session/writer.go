package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// MaxDirs is how many folders a writer can write to.
const MaxDirs = native.MaxDirs

// Format is what a writer's files are.
type Format = native.Format

// Formats lists those of a kind of writer, "pcap", "raw" or "blocks"; the first is what it writes unless another is chosen.
func Formats(kind string) (list []Format) {
	for _, f := range native.Formats() {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

// Rotation says when a writer goes on in another file, whatever comes first; 0: never for that.
type Rotation = native.Rotation

// WriterOptions describes the files of a writer.
type WriterOptions struct {
	Format           Format
	Dirs             []string // bursts go to them in turn
	Prefix           string
	Snaplen          int    // pcap: bytes kept of each packet, 0: all
	Micro            bool   // pcap: times in µs, not ns
	Append           bool   // pcap: go on behind what the file has
	Overwrite        bool   // files of its names are replaced; without it, and without Append, all stay and this run's get an index
	PacketDataOffset int    // raw: bytes left out at the front of each packet
	BySlot           bool   // blocks: the bitmap is of slots, not of packets
	Text             string // pcapng: the section's comment; blocks: the user's in each header
	Rotate           Rotation
	Quota            uint64 // bytes of all files, 0: no limit
	DeleteOldest     bool   // at the quota, rather than lose packets
	StopWhenFull     bool   // at the quota the run has what it is for
	NoManifest       bool   // DIR/PREFIX.manifest.json is not wanted
	Policy           Policy

	manifest manifestOf
}

// WriteFiles makes a stage that writes files of a format. A pcap has frames: packets of payload queues get headers made of
// the local and the peer address. native/writer/BLOCKS.md has the form of blocks.
func (s *Session) WriteFiles(name string, o WriterOptions) (*Stage, error) {
	st, err := s.stage(name, o.Format.Kind, "", func(n string) (native.Stage, error) {
		if s.state == started { // it begins at once
			if err := s.claimNames(n, &o); err != nil {
				return native.Stage{}, err
			}
		}
		return s.native.AddWriter(n, native.WriterConf{
			Format:           o.Format,
			Dirs:             o.Dirs,
			Prefix:           o.Prefix,
			PacketDataOffset: o.PacketDataOffset,
			Snaplen:          o.Snaplen,
			Policy:           o.Policy,
			Micro:            o.Micro,
			Append:           o.Append,
			Overwrite:        o.Overwrite,
			BySlot:           o.BySlot,
			Text:             o.Text,
			Rotate:           o.Rotate,
			Quota:            o.Quota,
			DeleteOldest:     o.DeleteOldest,
			Enough:           o.StopWhenFull,
		})
	})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		st.writer = &o
		st.manifest = s.manifestPath(st)
		if s.state == started {
			if err = s.writeManifest(st, false); err != nil {
				st.removeManifest()
			} else {
				st.replaceManifest()
			}
		}
	}
	return st, err
}

// StopsWhenFull says whether a writer of the session ends the run at its quota. Owner's thread.
func (s *Session) StopsWhenFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.writes() && st.writer.StopWhenFull })
}

// Aside says of a writer of one file that its name was taken: what is there stays, and this run writes PREFIX_INDEX. Empty: its file has
// the plain name. After the start. Owner's thread.
func (st *Stage) Aside() string {
	if !st.writes() || !st.writer.oneFile() {
		return ""
	}
	paths := st.Paths()
	if o := st.writer; len(paths) > 0 && paths[0] != "" && filepath.Base(paths[0]) != o.Prefix+o.Format.Suffix {
		return fmt.Sprintf("writer %s: %s of an earlier run stays; this run writes %s; hint: overwrite = true replaces it, rotate numbers all files",
			st.name, filepath.Join(o.Dirs[0], o.Prefix+o.Format.Suffix), strings.Join(paths, ", "))
	}
	return ""
}

// oneFile: it writes one file in each folder.
func (o *WriterOptions) oneFile() bool {
	return !o.Format.Aggregates && !o.Format.Each && o.Rotate == Rotation{}
}

func (st *Stage) writes() bool { return st.writer != nil }

// Writer reports whether it puts packets into files or objects.
func (st *Stage) Writer() bool { return st.writes() || st.s3 != nil }

// Paths lists the files that a writer writes, or wrote last, one for each folder; where a
// writer's objects go; none of other stages.
func (st *Stage) Paths() []string {
	if st.s3 != nil {
		return []string{st.s3.w.Where()}
	}
	if !st.writes() || st.s.enter() != nil {
		return nil
	}
	defer st.s.leave()
	return st.native.WriterPaths()
}

// Error is a writer's first error, nil when there is none.
func (st *Stage) Error() error {
	if st.s3 != nil {
		return st.writerError()
	}
	if !st.writes() || st.s.enter() != nil {
		return nil
	}
	defer st.s.leave()
	return st.writerError()
}

func (st *Stage) writerError() error {
	if st.s3 != nil {
		return within("writer "+st.name, st.s3.w.Err())
	}
	if !st.writes() {
		return nil
	}
	if words := st.native.WriterError(); words != "" {
		return fmt.Errorf("writer %s: %w", st.name, errors.New(words))
	}
	return nil
}

// WriteNames is what one burst has of its own.
type WriteNames = native.WriteNames

// Write hands b to a writer by reference, in a pipe or not. The task keeps the burst, whose
// packets are read-only from now on. names: nil, or what the burst has of its own:
// ErrInvalid where the writer has no use for it. ErrNoSpace while the writer's ring is full. Owner's task.
func (st *Stage) Write(b *Burst, names *WriteNames) (*Op, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	switch {
	case !st.writes() && st.s3 == nil:
		return nil, invalid("stage %s: it is no writer", st.name)
	case b.s != st.s:
		return nil, invalid("writer %s: the burst belongs to another session", st.name)
	}
	if err := b.readable(^uint32(0)); err != nil && !b.onGPU() {
		return nil, within("writer "+st.name, err)
	}
	var op native.Op
	var err error
	if st.s3 != nil {
		op, err = st.s3.give(b, names)
	} else {
		op, err = st.native.Write(b.native, names)
	}
	if err != nil {
		return nil, within("writer "+st.name, err)
	}
	b.native.View(&b.view) // it is shared now
	return newOp("writer "+st.name, op), nil
}
