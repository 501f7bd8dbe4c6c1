package baseline_test

import (
	"encoding/binary"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/baseline"
)

func TestMemory(t *testing.T) {
	for _, c := range []struct {
		name string
		conf baseline.Memory
		ok   bool
	}{
		{"in place", baseline.Memory{Buffers: 256, Stride: 2304, Batch: 64, Bytes: 64}, true},
		{"the frame's port is written and read", baseline.Memory{Buffers: 256, Stride: 2304, Batch: 64, Bytes: 64, Port: 7148}, true},
		{"and copied", baseline.Memory{Buffers: 256, Stride: 2304, Batch: 64, Bytes: 64, Port: 7148, Copy: true}, true},
		{"a buffer shorter than a line", baseline.Memory{Buffers: 64, Stride: 62, Batch: 64, Bytes: 62, Port: 7148, Copy: true}, true},
		{"more than a line", baseline.Memory{Buffers: 256, Stride: 2304, Batch: 64, Bytes: 1000, Port: 7148, Copy: true}, true},
		{"copied", baseline.Memory{Buffers: 256, Stride: 2304, Batch: 64, Bytes: 64, Copy: true}, true},
		{"a batch larger than the pool", baseline.Memory{Buffers: 32, Stride: 2304, Batch: 64, Bytes: 64}, false},
		{"no room for the port", baseline.Memory{Buffers: 256, Stride: 2304, Batch: 64, Bytes: 37}, false},
		{"frame larger than the stride", baseline.Memory{Buffers: 256, Stride: 60, Batch: 64, Bytes: 64}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.conf.For = time.Millisecond
			f, err := baseline.RunMemory(c.conf)
			if (err == nil) != c.ok {
				t.Fatalf("error %v", err)
			}
			if c.ok && (f.Packets == 0 || f.Packets%64 != 0 || f.Bytes != uint64(c.conf.Bytes)*f.Packets) {
				t.Errorf("%+v: not whole batches of 64", f)
			}
		})
	}
}

// TestDatagrams sends few enough that no buffer is too small for them.
func TestDatagrams(t *testing.T) {
	for _, c := range []struct {
		name           string
		size, segments int
		gro, marks     bool
	}{
		{"plain", 1024, 0, false, true},
		{"plain, until nothing comes", 1024, 0, false, false},
		{"segments, received one by one", 512, 8, false, true},
		{"segments, received together", 512, 8, true, true},
		{"smallest", 16, 0, true, true},
		{"largest", 65507, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent, got baseline.Figures
			for d := 250 * time.Millisecond; sent.Packets == 0; d *= 2 { // a busy machine may let no packet out in that time
				r, err := baseline.Listen(baseline.Recv{Host: "127.0.0.1", Size: c.size, GRO: c.gro})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				sent, err = baseline.RunSend(baseline.Send{Host: "127.0.0.1", Port: r.Port(), Size: c.size, Segments: c.segments, PPS: 64,
					For: d, EndMarks: c.marks})
				if err == nil && sent.Packets > 0 {
					got, err = r.Receive(100 * time.Millisecond)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got.Packets != sent.Packets || got.Bytes != sent.Bytes || got.Missing != 0 {
				t.Errorf("sent %+v, received %+v", sent, got)
			}
		})
	}
}

// TestMissing lets another socket send the numbers 0, 1, 2, 5: two never came.
func TestMissing(t *testing.T) {
	r, err := baseline.Listen(baseline.Recv{Host: "127.0.0.1", Size: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := net.Dial("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port())))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, number := range []uint64{0, 1, 2, 5} {
		if _, err := c.Write(append(binary.NativeEndian.AppendUint64(nil, number), make([]byte, 8)...)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := r.Receive(100 * time.Millisecond); err != nil || got.Packets != 4 || got.Missing != 2 {
		t.Errorf("%+v, %v; want 4 packets, 2 missing", got, err)
	}
}

func TestLatency(t *testing.T) {
	r, err := baseline.Listen(baseline.Recv{Host: "127.0.0.1", Size: 1024, Stamps: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for sent := uint64(0); sent < 5; { // as many as it takes, on a busy machine
		f, err := baseline.RunSend(baseline.Send{Host: "127.0.0.1", Port: r.Port(), Size: 64, PPS: 200, For: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		sent += f.Packets
	}
	ns, err := r.Latency(5, time.Second)
	if err != nil || len(ns) != 5 {
		t.Fatalf("%d times, %v; want 5", len(ns), err)
	}
	for i, v := range ns {
		if v <= 0 {
			t.Errorf("datagram %d: read %d ns after the kernel had it", i, v)
		}
	}
}

func TestRefusals(t *testing.T) {
	if _, err := baseline.Listen(baseline.Recv{Host: "localhost"}); err == nil {
		t.Error("a name is no numeric address")
	}
	for _, conf := range []baseline.Send{{Host: "here", Size: 64}, {Host: "127.0.0.1", Size: 15}, {Host: "127.0.0.1", Size: 2048, Segments: 64}} {
		if _, err := baseline.RunSend(conf); err == nil {
			t.Errorf("%+v: sent", conf)
		}
	}
}

func TestOrder(t *testing.T) {
	for _, copies := range []bool{false, true} {
		if rate, err := baseline.RunReorder(1024, copies, !copies, 10*time.Millisecond); err != nil || rate <= 0 {
			t.Errorf("reorder, copies %v: %v bytes a second, %v", copies, rate, err)
		}
	}
	if _, err := baseline.RunReorder(1000, false, false, time.Millisecond); err == nil {
		t.Error("payloads that fill no block are taken")
	}
	for _, types := range [][2]string{{"int16", "fp32"}, {"", ""}} {
		if rate, err := baseline.RunConvert(types[0], types[1], true, 10*time.Millisecond); err != nil || rate <= 0 {
			t.Errorf("%v: %v bytes a second, %v", types, rate, err)
		}
	}
	if _, err := baseline.RunConvert("fp32", "int16", false, time.Millisecond); err == nil {
		t.Error("fp32 becomes int16")
	}
}
