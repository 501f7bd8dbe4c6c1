package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Contract tests of packet contents: filters, columns, files, times, conversion.

// seqField returns the field into which put writes a packet's number.
func (b *bench) seqField() session.Field {
	return session.Field{Base: session.BasePayload, BitWidth: 64}
}

func TestContractColumnsAndSelections(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		if err := b.send(100, 8, 7148); err != nil {
			return err
		}
		odd, err := session.CompileSelector("seq % 2 == 1 and len > 64", only{"seq", b.seqField()})
		if err != nil {
			return err
		}
		var values, picked []uint64
		for len(values) < 8 {
			x, err := tap.Next(b.l, b.deadline())
			if err != nil {
				return err
			}
			out, has := make([]uint64, x.N()), make([]uint8, x.N())
			if n, err := x.Column(b.seqField(), out, has); err != nil || n != x.N() || slices.Contains(has, 0) {
				return fmt.Errorf("column: %d of %d, %w", n, x.N(), err)
			}
			values = append(values, out...)
			sel, err := x.Select(odd)
			if err != nil {
				return err
			}
			if err := x.Free(); err != nil { // the selection keeps its packets
				return err
			}
			for i := range sel.N() {
				p, err := sel.Packet(0, i)
				if err != nil {
					return err
				}
				seq, err := b.seq(p)
				if err != nil {
					return err
				}
				picked = append(picked, seq)
			}
			if err := sel.Free(); err != nil {
				return err
			}
		}
		if !slices.Equal(values, []uint64{100, 101, 102, 103, 104, 105, 106, 107}) {
			t.Errorf("column: %v", values)
		}
		if !slices.Equal(picked, []uint64{101, 103, 105, 107}) {
			t.Errorf("selected: %v", picked)
		}
		return nil
	})
}

// only is a format of one field.
type only struct {
	name string
	f    session.Field
}

func (o only) Field(name string) (session.Field, bool) { return o.f, name == o.name }
func (o only) Names() []string                         { return []string{o.name} }

func TestContractTeeIsReadOnly(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		one, err := b.rx.Tap(b.me, "one", session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		two, err := b.rx.Tap(b.me, "two", session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		if err := b.send(0, 4, 7148); err != nil {
			return err
		}
		for _, tap := range []*session.Tap{one, two} {
			err := b.receive(tap, 4, func(x *session.Burst, i int) error {
				if _, err := x.Set(b.seqField(), 1, 0, session.CsumKeep); x.Writable() == nil || !errors.Is(err, session.ErrInvalid) {
					return fmt.Errorf("shared %v, set: %w", x.Writable() != nil, err)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		two.Close()
		if err := b.send(4, 1, 7148); err != nil {
			return err
		}
		return b.receive(one, 1, func(x *session.Burst, i int) error {
			if n, err := x.Set(b.seqField(), 9, 0, session.CsumKeep); err != nil || n != 1 || x.Writable() != nil {
				return fmt.Errorf("alone: writable %w, set %d, %w", x.Writable(), n, err)
			}
			return nil
		})
	})
}

// sieve is a case of the filter test.
type sieve struct {
	name   string
	cond   session.Condition
	frames bool // for frame engines only
	pass   func(b *bench, seq uint64) bool
}

func TestContractFilters(t *testing.T) {
	all := func(*bench, uint64) bool { return true }
	none := func(*bench, uint64) bool { return false }
	for _, c := range []sieve{
		{"where", session.Condition{Where: "len >= 400"}, false, func(b *bench, seq uint64) bool { return b.length(seq) >= 400 }},
		{"field of a format", session.Condition{Where: "seq < 3", Fields: only{"seq", session.Field{Base: session.BasePayload, BitWidth: 64}}}, false,
			func(b *bench, seq uint64) bool { return seq < 3 }},
		{"match", session.Condition{Match: &spec.Match{UDPDst: &spec.PortRange{First: 7000, Last: 7200}}}, true, all},
		{"match nothing", session.Condition{Match: &spec.Match{UDPDst: &spec.PortRange{First: 1, Last: 2}}}, true, none},
		{"pcap", session.Condition{Pcap: "udp dst port 7148 and src host 10.0.0.1"}, true, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			withBench(t, "", func(t *testing.T, b *bench) error { return c.run(t, b) })
		})
	}
}

func (c sieve) run(t *testing.T, b *bench) error {
	f, err := b.s.Filter("sieve", c.cond)
	if errors.Is(err, session.ErrNotSupported) && c.cond.Pcap != "" {
		return lacks{"libpcap", err}
	}
	if err != nil {
		return err
	}
	count, err := b.s.Count("passed")
	if err != nil {
		return err
	}
	_, err = b.s.Pipe([]*session.Queue{b.rx}, f, count)
	if c.frames && !b.frames {
		if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "works on frames") {
			t.Errorf("a filter of frames on payloads: %v", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	tap, err := b.begin(session.Wait)
	if err != nil {
		return err
	}
	const n = 10
	if err := b.send(0, n, 7148); err != nil {
		return err
	}
	want := 0.0
	for seq := range uint64(n) {
		if c.pass(b, seq) {
			want++
		}
	}
	if err := b.receive(tap, n, func(*session.Burst, int) error { return nil }); err != nil {
		return err
	}
	b.quiesce()
	l := b.s.Ledger()
	passed, _ := l.Lookup("passed.in")
	refused, _ := l.Lookup("sieve.dropped_by.filtered")
	if passed != want || refused != n-want {
		t.Errorf("passed %v, refused %v; want %v of %d", passed, refused, want, n)
	}
	return nil
}

func TestContractWritesEveryPacket(t *testing.T) {
	for _, kind := range []string{"pcap", "raw"} {
		t.Run(kind, func(t *testing.T) {
			withBench(t, "", func(t *testing.T, b *bench) error {
				dir := t.TempDir()
				formats := session.Formats(kind)
				format := formats[max(0, slices.IndexFunc(formats, func(f session.Format) bool { return f.Choice == "packet" }))] // raw: a file each
				disk, err := b.s.WriteFiles("disk", session.WriterOptions{Format: format, NoManifest: true, Dirs: []string{dir}, Prefix: "cap", Policy: session.Wait})
				if err != nil {
					return err
				}
				if _, err := b.s.Pipe([]*session.Queue{b.rx}, disk); err != nil {
					return err
				}
				tap, err := b.begin(session.Wait)
				if err != nil {
					return err
				}
				if err := b.send(0, 12, 7148); err != nil {
					return err
				}
				if err := b.receive(tap, 12, func(*session.Burst, int) error { return nil }); err != nil {
					return err
				}
				b.quiesce()
				if err := b.s.Finish(); err != nil {
					return err
				}
				if got, _ := b.s.Ledger().Lookup("disk.written"); got != 12 {
					t.Errorf("written %v of 12", got)
				}
				if kind == "raw" {
					files, err := filepath.Glob(filepath.Join(dir, "cap*"))
					if len(files) != 12 {
						t.Errorf("%d files of 12, %v", len(files), err)
					}
					return nil
				}
				return b.checkPcap(disk.Paths()[0], 12)
			})
		})
	}
}

// checkPcap checks a nanosecond pcap with an independent reader.
func (b *bench) checkPcap(path string, want uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(data) < 24 || binary.LittleEndian.Uint32(data) != 0xa1b23c4d {
		return fmt.Errorf("%s: not a nanosecond pcap: % x", path, data[:min(24, len(data))])
	}
	data = data[24:]
	for seq := range want {
		if len(data) < 16 {
			return fmt.Errorf("%s: ends after %d of %d packets", path, seq, want)
		}
		n := int(binary.LittleEndian.Uint32(data[8:]))
		p := data[16 : 16+n]
		data = data[16+n:]
		got, err := b.seq(p[len(p)-b.length(seq):])
		if err == nil && got != seq {
			err = fmt.Errorf("number %d", got)
		}
		if err != nil {
			return fmt.Errorf("%s: packet %d: %w", path, seq, err)
		}
	}
	if len(data) != 0 {
		return fmt.Errorf("%s: %d bytes too many", path, len(data))
	}
	return nil
}

func TestContractTimedSend(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		x, err := b.tx.Alloc(b.l, 3)
		if err != nil {
			return err
		}
		if err := b.fill(x); err != nil {
			return err
		}
		due := b.s.Now() + int64(5*time.Millisecond)
		times, err := x.TxTimes()
		if err != nil {
			return err
		}
		for i := range times {
			times[i] = due + int64(i)*1e6
		}
		if err := b.tx.Send(x); err != nil {
			return err
		}
		n := int64(0)
		return b.receive(tap, 3, func(x *session.Burst, i int) error {
			if at := x.RxTimes()[i]; at < due+n*1e6 {
				return fmt.Errorf("packet %d came %d ns before its time", n, due+n*1e6-at)
			}
			n++
			return nil
		})
	})
}

// TestContractConvert checks that payloads are converted to floats, with any engine, and that packets keep their origin.
func TestContractConvert(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		data := session.DataTypes{Input: "int16", Output: "fp32", Network: true}
		head := 8 // sequence number
		if b.frames {
			head += headers
		}
		st, err := b.s.Convert("floats", session.ConvertOptions{MemoryRegion: "out", Data: data, PayloadByteOffset: 8, AtPayload: true})
		if err != nil {
			return err
		}
		if st.Kind() != session.KindConvert || st.Name() != "floats" {
			t.Errorf("%s %s", st.Kind(), st.Name())
		}
		return b.convert(t, st, &data, head)
	})
}

// convert sends packets, every second one of odd length, through the stage.
func (b *bench) convert(t *testing.T, st *session.Stage, data *session.DataTypes, head int) error {
	tap, err := b.s.Tap("", b.me, nil, session.TapOptions{Policy: session.Wait})
	if err != nil {
		return err
	}
	if _, err := b.s.Pipe([]*session.Queue{b.rx}, st, tap.Stage); err != nil {
		return err
	}
	if err := b.s.Start(b.me); err != nil {
		return err
	}
	if err := b.send(0, 10, 7148); err != nil {
		return err
	}
	next := uint64(0)
	err = b.receive(tap, 5, func(x *session.Burst, i int) error {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		sent := make([]byte, b.length(next))
		b.put(sent, next, 7148)
		want, _ := converted(data, sent[head:])
		if number := binary.BigEndian.Uint64(p[head-8:]); number != next || !slices.Equal(p[head:], want) {
			return fmt.Errorf("packet %d where %d was due, of %d bytes: %x", number, next, len(p), p[head:])
		}
		if peer, err := x.Peer(i); err != nil || (peer == "") != b.frames {
			return fmt.Errorf("packet %d: from %q, %w", next, peer, err)
		}
		next += 2
		return nil
	})
	b.quiesce()
	if n, _ := b.s.Ledger().Lookup("floats.dropped_by.bad_payload"); n != 5 {
		t.Errorf("%v packets of an odd length", n)
	}
	return err
}
