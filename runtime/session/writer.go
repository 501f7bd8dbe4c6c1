package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session/recording"
)

// MaxDirs is the maximum number of folders of a writer.
const MaxDirs = native.MaxDirs

// Format is a file format of writers.
type Format = native.Format

// Formats returns the formats of a kind of writer, such as "pcap"; the first one is the default.
func Formats(kind string) (list []Format) {
	for _, f := range native.Formats() {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

// Rotation limits the files of a writer, which starts a new file at the first limit reached; 0: unlimited.
type Rotation = native.Rotation

// WriterOptions describes the files of a writer.
type WriterOptions struct {
	Format           Format
	Dirs             []string // bursts are distributed round-robin
	Prefix           string
	Snaplen          int    // pcap: stored bytes per packet, 0: all
	Micro            bool   // pcap: times in us instead of ns
	Append           bool   // pcap: append to an existing file
	Overwrite        bool   // replace existing files; without it, and without Append, new files get an index
	PacketDataOffset int    // raw: bytes skipped at the start of each packet
	BySlot           bool   // blocks: bitmap of slots instead of packets
	Text             string // pcapng: comment of the section; blocks, zarr: user text in each header; sigmf: JSON members of the global object
	Capture          string // sigmf: JSON members of each capture
	Samples          recording.Layout
	Zarr             recording.Zarr // zarr: what the array's metadata have besides
	Rotate           Rotation
	Quota            uint64 // maximum bytes of all files, 0: no limit
	DeleteOldest     bool   // at the quota: delete the oldest files instead of losing packets
	StopWhenFull     bool   // end the run at the quota
	NoManifest       bool   // do not write DIR/PREFIX.manifest.json
	Policy           Policy
}

// WriteFiles creates a stage that writes files of a format. A pcap contains frames: packets of payload queues get headers generated from the local
// and the peer address. native/writer/BLOCKS.md specifies the format of blocks.
func (s *Session) WriteFiles(name string, o WriterOptions) (*Stage, error) {
	st, err := s.stage(name, o.Format.Kind, "", func(n string) (native.Stage, error) {
		if s.state == started { // starts immediately
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
			Capture:          o.Capture,
			SampleBytes:      o.Samples.Bytes,
			SampleDtype:      o.Samples.Dtype,
			Element:          o.Zarr.Element,
			Complex:          o.Zarr.Complex,
			BigEndian:        o.Zarr.BigEndian,
			Attributes:       o.Zarr.Attributes,
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
		st.manifest = s.newManifest(st)
		if s.state == started {
			if err = s.writeManifest(st, false); err != nil {
				st.manifest.Remove()
			} else {
				st.replaceManifest()
			}
		}
	}
	return st, err
}

// StopsWhenFull reports whether a writer of the session ends the run at its quota. It must be called on the owner's thread.
func (s *Session) StopsWhenFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.writes() && st.writer.StopWhenFull })
}

// Aside returns a note if the file name of a single-file writer existed before, so that this run writes PREFIX_INDEX; empty if the file has the plain
// name. It must be called after the start, on the owner's thread.
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

// oneFile reports whether the writer creates one file per folder.
func (o *WriterOptions) oneFile() bool {
	return !o.Format.Aggregates && !o.Format.Each && o.Rotate == Rotation{}
}

func (st *Stage) writes() bool { return st.writer != nil }

// Writer reports whether the stage writes files or objects.
func (st *Stage) Writer() bool { return st.writes() || st.s3 != nil }

// Paths returns the current or last file of a writer in each folder, or the destination of a writer's objects; nil for other stages.
func (st *Stage) Paths() []string {
	if st.s3 != nil {
		return []string{st.s3.Where()}
	}
	if !st.writes() || st.s.enter() != nil {
		return nil
	}
	defer st.s.leave()
	return st.native.WriterPaths()
}

// Error returns a writer's first error, or nil.
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
		return within("writer "+st.name, st.s3.Err())
	}
	if !st.writes() {
		return nil
	}
	if words := st.native.WriterError(); words != "" {
		return fmt.Errorf("writer %s: %w", st.name, errors.New(words))
	}
	return nil
}

// WriteNames holds the names and comments of a single burst.
type WriteNames = native.WriteNames

// Write passes b to a writer by reference, independently of pipes. The task still owns the burst, whose packets become read-only. names is nil or
// holds names for this burst. It returns ErrInvalid if the writer does not support these, and ErrNoSpace while its ring is full. It must be called by
// the owner's task.
func (st *Stage) Write(b *Burst, names *WriteNames) (*Op, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	switch {
	case !st.writes() && st.s3 == nil:
		return nil, invalid("stage %s: it is not a writer", st.name)
	case b.s != st.s:
		return nil, invalid("writer %s: the burst belongs to another session", st.name)
	}
	if err := b.readable(^uint32(0)); err != nil && !b.onGPU() {
		return nil, within("writer "+st.name, err)
	}
	var op native.Op
	var err error
	if st.s3 != nil {
		op, err = st.s3.Put(b.native, int(b.view.N), names)
	} else {
		op, err = st.native.Write(b.native, names)
	}
	if err != nil {
		return nil, within("writer "+st.name, err)
	}
	b.native.View(&b.view) // now shared
	return newOp("writer "+st.name, op), nil
}
