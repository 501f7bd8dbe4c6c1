package native

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestErrors(t *testing.T) {
	denied := Err(-1000 - int(syscall.EACCES))
	for _, c := range []struct {
		err  Err
		name string
		text string
	}{
		{ErrNoSpace, "NO_SPACE_AVAILABLE", "no space available"},
		{ErrNoPacket, "NO_FREE_PACKET_BUFFERS", "no free packet buffers"},
		{denied, syscall.EACCES.Error(), syscall.EACCES.Error()},
	} {
		if got := c.err.Error(); got != c.text {
			t.Errorf("%d: error %q, want %q", c.err, got, c.text)
		}
		if got := c.err.Name(); !strings.EqualFold(got, c.name) {
			t.Errorf("%d: name %q, want %q", c.err, got, c.name)
		}
	}
	wrapped := &Error{Op: "open", Object: "port 7: in use", Code: denied}
	if wrapped.Error() != "port 7: in use" || !errors.Is(wrapped, denied) || !errors.Is(wrapped, syscall.EACCES) || !errors.Is(wrapped, fs.ErrPermission) {
		t.Errorf("the chain is broken: %v", wrapped)
	}
	if errors.Is(wrapped, ErrNoSpace) || errors.Is(ErrNoSpace, syscall.EACCES) {
		t.Error("errors match what they are not")
	}
	if bare := (&Error{Op: "open", Code: ErrInternal}).Error(); bare != "open: internal error" {
		t.Errorf("without words: %q", bare)
	}
}

func TestTables(t *testing.T) {
	for _, r := range ReasonRows {
		if r.Name == "" || r.Text == "" || r.Advice == "" {
			t.Errorf("reason without words: %+v", r)
		}
	}
	for _, r := range ExtraRows {
		if r.Name == "" || r.Unit == "" || r.Text == "" {
			t.Errorf("figure without words: %+v", r)
		}
	}
	for _, r := range HistogramRows {
		unit := "ns" // of times, waits and errors
		if strings.HasSuffix(r.Name, "_size") {
			unit = "packets"
		}
		if r.Name == "" || r.Metric == "" || r.Text == "" || r.Unit != unit {
			t.Errorf("histogram without words, or not in %s: %+v", unit, r)
		}
	}
	names := FieldNames()
	if !slices.Contains(names, "udp_dst") {
		t.Errorf("field names: %v", names)
	}
	for _, n := range names {
		if _, ok := FieldNamed(n); !ok {
			t.Errorf("field %s: listed and not found", n)
		}
	}
	if f, ok := FieldNamed("udp_dest"); ok {
		t.Errorf("udp_dest: %+v", f)
	}
}

func TestTextsThatDoNotFit(t *testing.T) {
	s, err := NewSession(SessionConf{RxMetaBuffers: 8, TxMetaBuffers: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{strings.Repeat("x", MaxName+1), "a\x00b"} {
		if _, err := s.AddRegion(RegionConf{Name: name, NumBufs: 1, BufSize: 64}); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %.10q…: %v", name, err)
		}
	}
	if _, err := s.AddRegion(RegionConf{Name: strings.Repeat("x", MaxName), NumBufs: 1, BufSize: 64}); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}

func TestCloseTwice(t *testing.T) {
	s, err := NewSession(SessionConf{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.Close(), s.Close(); a != 0 || b != 0 {
		t.Errorf("missing buffers: %d, %d", a, b)
	}
}

// TestQueueNumbers: numbers of a queue reach the members of dq_queue_conf with their names, of any type. A name without a member and a number outside
// of its member's range are mistakes in the table of keys.
func TestQueueNumbers(t *testing.T) {
	conf := QueueConf{Name: "q", Numbers: map[string]int64{
		"id": 65535, "batch_size": 1 << 20, "timeout_us": 1<<32 - 1, "pacing_mbps": 100_000_000, "tx_eth_src": 1,
	}}
	c, err := conf.c()
	if err != nil || c.id != 65535 || c.batch_size != 1<<20 || c.timeout_us != 1<<32-1 || c.pacing_mbps != 1e8 || c.tx_eth_src != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, n := range map[string]int64{"zzz": 1, "regions": 1, "batch_size": 1 << 32, "timeout_us": -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s = %d was set", name, n)
				}
			}()
			_, _ = (&QueueConf{Numbers: map[string]int64{name: n}}).c()
		}()
	}
}
