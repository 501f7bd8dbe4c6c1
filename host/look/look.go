// Package look draws pictures of the samples in a capture, a file or a live stream, as PNG files, on a terminal, or as text, with runtime/picture.
//
// Read reads a source into a Result, which has a Stream for each value of the fields that separate streams. Pictures are drawn from a Result.
package look

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/samples"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Options describes what Read reads.
type Options struct {
	Source string
	Format *format.Format // of packets; nil: samples are the innermost payload
	Type   *samples.Type  // nil: what a block file or Format states
	Offset int            // bytes in front of the samples, after the format's header or at the start of a raw file
	By     []string       // fields of Format that separate streams; nil: those of its sequence
	Points int            // of a transform; 0: at most 4096, and no more than a run of samples has
	Window signal.Window
	Rate   float64             // samples per second; 0: what Format states, or unknown
	Limit  time.Duration       // 0: until the source or ctx ends, and two seconds of a live source without Update
	Update func(*Result) error // called twice a second while the source is read; nil: none
}

// maxStreams limits the memory for streams.
const maxStreams = 64

// Result has the figures of a source.
type Result struct {
	Options
	Streams   []*Stream // ordered by their values
	Packets   uint64    // packets or blocks
	Other     uint64    // of another format, or without a payload
	Partial   uint64    // with a payload that is not whole samples
	TooMany   uint64    // of streams beyond the limit
	Dropped   uint64    // lost by a live source
	Rest      uint64    // bytes at the end of a file that are not whole samples
	Err       error     // why the source could not be read to its end
	Example   string    // why the first skipped packet was skipped
	Frequency float64   // in Hz, of what has the frequency 0 in the samples, as Format states it; 0: unknown

	live            bool
	opened, updated time.Time
	shape           []int  // of the first packet's samples, if more than one dimension is larger than 1
	byPacket        string // the type that packets state; empty: none does
	container       string // noun for what contains samples
	byKey           map[string]*Stream
	text            []byte // scratch memory for a key
}

// Read reads the samples of a source until it ends, the time is up or ctx is done. Of a source that is damaged it returns what could be read, and Err.
func Read(ctx context.Context, o Options) (*Result, error) {
	r := &Result{Options: o, container: "packet", byKey: map[string]*Stream{}, opened: time.Now()}
	if o.By == nil && o.Format != nil {
		r.By = o.Format.Spec.Per
	}
	if o.Points != 0 {
		if _, err := signal.NewFFT(o.Points); err != nil {
			return nil, err
		}
	}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	for _, s := range r.Streams {
		s.end()
		s.Rate = r.Rate
	}
	slices.SortFunc(r.Streams, func(a, b *Stream) int { return slices.Compare(a.values, b.values) })
	return r, nil
}

// packet adds a packet, whose layers begin with a frame if frame is set.
func (r *Result) packet(packet []byte, frame bool) {
	r.Packets++
	layer := "payload"
	if r.Format != nil && r.Format.Spec.Layer != "" {
		layer = r.Format.Spec.Layer
	}
	from, to, ok := session.LayerOf(packet, frame, layer)
	if !ok {
		r.other("it has no " + layer + " layer")
		return
	}
	payload, values, number, numbered, limit := packet[from:to], []uint64(nil), uint64(0), false, math.MaxInt
	if r.Format != nil {
		header := payload
		p, err := r.Format.Packet(payload)
		if err != nil {
			r.other(err.Error())
			return
		}
		if payload, ok = p.Payload(); !ok {
			r.other("it carries no data, or is shorter than its header")
			return
		}
		for _, name := range r.By {
			v, ok := p.Number(name)
			if !ok {
				r.other("it has no field " + name)
				return
			}
			values = append(values, v)
		}
		number, numbered = p.Number(r.Format.Spec.Sequence)
		if r.Format.Spec.Samples != nil {
			if limit, ok = r.declared(header); !ok {
				return
			}
		}
	}
	if len(payload) <= r.Offset {
		r.other("its payload is empty")
		return
	}
	payload = payload[r.Offset:]
	if len(r.Streams) == 0 && r.Format != nil {
		r.dimensions(packet[from:to], len(payload))
	}
	if n := r.Type.Unit(); len(payload)%n != 0 {
		r.Partial++
		r.Example = cmp.Or(r.Example, fmt.Sprintf("a payload of %d bytes is not whole samples of %s, which are multiples of %d bytes", len(payload), r.Type, n))
		return
	}
	if n := r.Type.Samples(len(payload)); limit != math.MaxInt && limit > n {
		r.Partial++
		r.Example = cmp.Or(r.Example, fmt.Sprintf("its header states %s, and its payload has %d", picture.Counted(uint64(limit), "sample"), n))
		return
	}
	if s := r.stream(values); s != nil {
		s.add(number, numbered, payload, limit)
	}
}

// dimensions keeps the shape of the samples in a packet with so many bytes of them.
func (r *Result) dimensions(packet []byte, n int) {
	d, ok := r.Format.Sampled(packet)
	if shape := d.Shape(r.Type.Samples(n)); ok && len(slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })) > 1 {
		r.shape = shape
	}
}

// declared reads what the format declares about the samples of a packet: their number, their frequency, and unless Options have them their type and rate. It returns
// false if the type is unknown or another one than that of the first packet.
func (r *Result) declared(packet []byte) (limit int, ok bool) {
	d, ok := r.Format.Sampled(packet)
	if !ok {
		r.other("it is of another format")
		return 0, false
	}
	if r.Rate == 0 && d.Rate > 0 {
		r.Rate = d.Rate
	}
	if d.Frequency-d.Frequency == 0 {
		r.Frequency = d.Frequency
	}
	limit = math.MaxInt
	if d.Count >= 0 && d.Count < 1<<30 {
		limit = int(d.Count)
	}
	switch {
	case r.byPacket == "" && r.Type != nil:
		return limit, true
	case d.Type == "":
		r.other(cmp.Or(r.Format.Spec.Samples.Varies(), "the type of its samples is unknown") + ", and this one has none: set --samples")
		return 0, false
	case r.Type == nil:
		t, err := samples.Parse(d.Type)
		if err != nil {
			r.other(err.Error())
			return 0, false
		}
		r.Type, r.byPacket = t, d.Type
	case d.Type != r.byPacket:
		r.other(fmt.Sprintf("its samples are of type %s, and those of the first packet of type %s", d.Type, r.byPacket))
		return 0, false
	}
	return limit, true
}

func (r *Result) other(why string) {
	r.Other++
	r.Example = cmp.Or(r.Example, why)
}

// stream returns the stream of these values, or nil if there are too many.
func (r *Result) stream(values []uint64) *Stream {
	r.text = fmt.Append(r.text[:0], values)
	if s := r.byKey[string(r.text)]; s != nil {
		return s
	}
	if len(r.Streams) == maxStreams {
		r.TooMany++
		return nil
	}
	var names []string
	for i, v := range values {
		names = append(names, fmt.Sprintf("%s %d", r.By[i], v))
	}
	s := &Stream{Figures: picture.Figures{Name: strings.Join(names, ", ")}, values: values, of: r}
	r.byKey[string(r.text)] = s
	r.Streams = append(r.Streams, s)
	return s
}

// Check returns an error if the source has no samples.
func (r *Result) Check() error {
	if r.Err != nil && r.Packets == 0 {
		return exit.Fail(exit.Storage, r.Err)
	}
	for _, s := range r.Streams {
		if s.Samples > 0 {
			return nil
		}
	}
	why := fmt.Sprintf("%s, and none has samples", picture.Counted(r.Packets, r.container))
	switch {
	case r.container == "file":
		why = "it has no whole samples of " + r.Type.String()
	case r.Packets == 0 && r.live:
		why = "no packet arrived"
	case r.Packets == 0:
		why = "there is no " + r.container + " in it"
	}
	if r.Example != "" {
		why += "; the first one: " + r.Example
	}
	return exit.Fail(exit.Usage, fmt.Errorf("cannot read samples of %s: %s", r.Source, why))
}

// Skipped returns the number of packets that are in no stream, by reason.
func (r *Result) Skipped() map[string]uint64 {
	m := map[string]uint64{"of another format or without payload": r.Other, "with a payload that is not whole samples": r.Partial,
		fmt.Sprintf("of more than %d streams", maxStreams): r.TooMany, "dropped by the source": r.Dropped}
	maps.DeleteFunc(m, func(_ string, n uint64) bool { return n == 0 })
	return m
}
