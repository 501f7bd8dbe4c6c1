package look

import (
	"bytes"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

// window is the number of packets in which displaced ones are put into order.
const window = 64

// Stream has the figures of consecutive samples.
type Stream struct {
	Packets                   uint64
	Repeated, Late, Differing uint64 // packets: with the same number as another; displaced too far; with the same number and other data
	Restarts                  uint64
	picture.Figures                // Name has the values of the fields that separate streams; Set is nil before the first samples
	Numbered                  bool // missing samples are known
	values                    []uint64
	of                        *Result
	pending                   []piece // in order
	width                     int     // of numbers, in bits
	step, last                uint64  // difference of consecutive numbers; number of the last packet
	begun                     bool    // last is valid
	followed                  bool    // the figures are those of periods
	fresh                     int     // packets since settle was called
	late                      []piece // consecutive packets with a number before that of the last one
	scratch                   []float32
}

// piece is the payload of a packet.
type piece struct {
	number uint64
	data   []byte
	limit  int // of samples
}

// add adds the samples of a packet's data, at most so many.
func (s *Stream) add(number uint64, numbered bool, data []byte, limit int) {
	p := piece{number, bytes.Clone(data), limit}
	if numbered && !s.Numbered && len(s.pending) == 0 && s.Set == nil {
		s.Numbered = true
		if f := s.of.Format.Named(s.of.Format.Spec.Sequence); f != nil {
			s.width = f.Bits
		} else {
			s.width = 64
		}
	}
	at := len(s.pending)
	if s.Numbered {
		for at > 0 && s.after(s.pending[at-1].number, p.number) > 0 {
			at--
		}
		if at > 0 && s.pending[at-1].number == p.number || s.begun && s.last == p.number {
			s.Repeated++
			if at > 0 && !bytes.Equal(s.pending[at-1].data, p.data) {
				s.Differing++
			}
			return
		}
	}
	s.pending = slices.Insert(s.pending, at, p)
	s.fresh++
	if len(s.pending) > window {
		s.first()
	}
}

// after returns how far number a is after b, negative if it is before it.
func (s *Stream) after(a, b uint64) int64 {
	shift := 64 - s.width
	return int64((a-b)<<shift) >> shift
}

// first passes on the first of the pending packets, unless its number is before that of the last packet. Many such packets in a row are those of a
// sender that has started again.
func (s *Stream) first() {
	if s.Set == nil {
		s.begin()
	}
	p := s.pending[0]
	s.pending = slices.Delete(s.pending, 0, 1)
	if !s.Numbered || !s.begun || s.after(p.number, s.last) > 0 {
		s.Late += uint64(len(s.late))
		s.late = s.late[:0]
		s.pass(p)
		return
	}
	if s.late = append(s.late, p); len(s.late) <= window {
		return
	}
	again := s.late
	s.late = nil
	for _, p := range s.pending {
		s.pass(p)
	}
	s.pending = nil
	s.Restarts++
	s.Break()
	s.begun = false
	s.pending = append(s.pending, again...)
	slices.SortFunc(s.pending, func(a, b piece) int { return int(s.after(a.number, b.number)) })
}

// pass adds the samples of a packet to the figures.
func (s *Stream) pass(p piece) {
	values, err := s.of.Type.Append(s.scratch[:0], p.data)
	if err != nil {
		return // add's caller has checked the length
	}
	s.scratch = values
	step := s.of.Type.Range().Step()
	n := uint64(min(len(values)/step, p.limit))
	values = values[:int(n)*step]
	if s.Numbered {
		s.follow(p.number, n)
	} else {
		s.Break()
	}
	s.Packets++
	s.Add(values)
}

// maxGap is the number of missing packets from which on a sender is taken to have started again.
const maxGap = 1 << 32

// follow compares the number of a packet of n samples with the last one, and marks missing samples.
func (s *Stream) follow(number, n uint64) {
	steps := uint64(s.after(number, s.last)) / s.step
	switch {
	case !s.begun || uint64(s.after(number, s.last)) == s.step:
	case steps > maxGap:
		s.Restarts++
		s.Break()
	default:
		s.Gap((max(1, steps) - 1) * n)
	}
	s.begun, s.last = true, number
}

// begin creates the figures, when the first packets have arrived: they show the distance of numbers, and how long runs of samples are.
func (s *Stream) begin() {
	s.step = 1
	if s.Numbered {
		for i := 1; i < len(s.pending); i++ {
			if d := uint64(s.after(s.pending[i].number, s.pending[i-1].number)); i == 1 || d < s.step {
				s.step = d
			}
		}
	}
	s.beginWith(s.longestRun())
}

// longestRun returns the samples of the longest run of the pending packets.
func (s *Stream) longestRun() (longest int) {
	run := 0
	for i, p := range s.pending {
		if !s.Numbered || i == 0 || uint64(s.after(p.number, s.pending[i-1].number)) != s.step {
			run = 0
		}
		run += min(s.of.Type.Samples(len(p.data)), p.limit)
		longest = max(longest, run)
	}
	return longest
}

// beginWith creates the figures for runs of so many samples. The first stream determines the points of all transforms.
func (s *Stream) beginWith(run int) {
	if s.of.Points == 0 {
		s.of.Points = picture.PointsFor(run)
	}
	s.Window = s.of.Window
	s.Set, _ = signal.NewSet(s.of.Type.Range(), s.of.Points, s.of.Window) // Read has checked the points
	if s.followed = s.of.live && s.of.Update != nil; s.followed {
		s.Follow(s.of.now())
	}
}

// end passes on the pending packets.
func (s *Stream) end() {
	for len(s.pending) > 0 {
		s.first()
	}
	if s.Set == nil {
		s.begin()
	}
	s.Break()
}
