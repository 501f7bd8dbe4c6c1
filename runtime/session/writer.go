package session

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/s3"
)

// MaxDirs is how many folders a writer can write to.
const MaxDirs = native.MaxDirs

// Per says what a raw writer makes a file of.
type Per = native.WriterKind

// What a raw file holds.
const (
	PerPacket Per = native.WriteRawPackets // one packet: DIR/PREFIX_INDEX
	PerBurst  Per = native.WriteRawBursts  // the packets of a burst, back to back: DIR/PREFIX_INDEX
	PerFile   Per = native.WriteRawFile    // all packets, back to back: DIR/PREFIX.raw
)

// ParsePer reads "packet", "burst" or "file".
func ParsePer(text string) (Per, error) {
	switch text {
	case "packet":
		return PerPacket, nil
	case "burst":
		return PerBurst, nil
	case "file":
		return PerFile, nil
	}
	return PerPacket, fmt.Errorf("per %q: it is \"packet\", \"burst\" or \"file\"", text)
}

// Rotation says when a writer goes on in another file, whatever comes first; 0: never for that.
type Rotation = native.Rotation

// WriterOptions describes the files of a writer.
type WriterOptions struct {
	Dirs             []string // bursts go to them in turn
	Prefix           string
	Snaplen          int    // pcap: bytes kept of each packet, 0: all
	PcapNG           bool   // pcap: as pcapng
	Micro            bool   // pcap: times in µs, not ns
	Append           bool   // pcap: go on behind what the file has
	Per              Per    // raw
	PacketDataOffset int    // raw: bytes left out at the front of each packet
	BySlot           bool   // blocks: the bitmap is of slots, not of packets
	Text             string // pcapng: the section's comment; blocks: the user's in each header
	Rotate           Rotation
	Quota            uint64 // bytes of all files, 0: no limit
	DeleteOldest     bool   // at the quota, rather than lose packets
	NoManifest       bool   // DIR/PREFIX.manifest.json is not wanted
	Policy           Policy

	earlier string // where the manifest of an earlier run is
}

// WritePcap makes a stage that writes a pcap or pcapng into each folder. Packets of payload
// queues get headers made of the local and the peer address.
func (s *Session) WritePcap(name string, o WriterOptions) (*Stage, error) {
	files := native.WritePcap
	if o.PcapNG {
		files = native.WritePcapng
	}
	return s.writer(name, KindPcap, files, o)
}

// WriteBlocks makes a stage that writes reordered bursts, one block each, into files that a
// program maps as an array (native/BATCHES.md).
func (s *Session) WriteBlocks(name string, o WriterOptions) (*Stage, error) {
	return s.writer(name, KindBlocks, native.WriteBatches, o)
}

// WriteRaw makes a stage that writes the bytes of packets and nothing else.
func (s *Session) WriteRaw(name string, o WriterOptions) (*Stage, error) {
	return s.writer(name, KindRaw, max(o.Per, PerPacket), o)
}

func (s *Session) writer(name, kind string, files native.WriterKind, o WriterOptions) (*Stage, error) {
	st, err := s.stage(name, kind, "", func(n string) (native.Stage, error) {
		if s.state == started { // it begins at once
			if err := s.claimNames(n, &o); err != nil {
				return native.Stage{}, err
			}
		}
		return s.native.AddWriter(n, native.WriterConf{
			Kind:             files,
			Dirs:             o.Dirs,
			Prefix:           o.Prefix,
			PacketDataOffset: o.PacketDataOffset,
			Snaplen:          o.Snaplen,
			Policy:           o.Policy,
			Micro:            o.Micro,
			Append:           o.Append,
			BySlot:           o.BySlot,
			Text:             o.Text,
			Rotate:           o.Rotate,
			Quota:            o.Quota,
			DeleteOldest:     o.DeleteOldest,
		})
	})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		st.writer = &o
		st.manifest = s.manifestPath(st)
	}
	return st, err
}

func (st *Stage) writes() bool { return st.writer != nil }

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

// Write is the account of a burst that a task handed to a writer. It outlives the burst and
// the session. Safe for concurrent use.
type Write struct {
	native native.Write
	s3     *s3.Op // of a writer of objects, instead
	name   string // of the writer
}

// WriteState is what became of a burst so far: packets that are in a file or failed, and the
// bytes of the former.
type WriteState = native.WriteState

// WriteNames is what one burst has of its own.
type WriteNames = native.WriteNames

// Write hands b to a writer by reference, in a pipe or not. The task keeps the burst, whose
// packets are read-only from now on. names: nil, or what the burst has of its own:
// ErrInvalid where the writer has no use for it. ErrNoSpace while the writer's ring is full. Owner's task.
func (st *Stage) Write(b *Burst, names *WriteNames) (*Write, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	switch {
	case !st.writes() && st.s3 == nil:
		return nil, invalid("stage %s: it is no writer", st.name)
	case b.s != st.s:
		return nil, invalid("writer %s: the burst belongs to another session", st.name)
	}
	w := &Write{name: st.name}
	var err error
	if st.s3 != nil {
		w.s3, err = st.s3.give(b, names)
	} else {
		w.native, err = st.native.Write(b.native, names)
	}
	if err != nil {
		return nil, within("writer "+st.name, err)
	}
	b.native.View(&b.view) // it is shared now
	if w.s3 == nil {
		runtime.AddCleanup(w, native.Write.Free, w.native)
	}
	return w, nil
}

// State reads what became of the burst.
func (w *Write) State() WriteState {
	defer runtime.KeepAlive(w)
	if w.s3 != nil {
		s := w.s3.State()
		return WriteState{Done: s.Done, Completed: s.Completed, Failed: s.Failed, Bytes: s.Bytes}
	}
	return w.native.State()
}

// Error is the first failure, nil when there is none.
func (w *Write) Error() error {
	defer runtime.KeepAlive(w)
	if w.s3 != nil {
		return within("writer "+w.name, w.s3.Err())
	}
	if words := w.native.Error(); words != "" {
		return fmt.Errorf("writer %s: %s", w.name, words)
	}
	return nil
}
