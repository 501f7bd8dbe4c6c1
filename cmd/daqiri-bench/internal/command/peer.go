package command

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/baseline"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

// peerIdle is the idle time after which a receiver without a sender ends.
const peerIdle = time.Second

// peerFlags are the flags of all loops.
type peerFlags struct {
	host                                            string
	port, size, segments, buffers, stride, batch, n int
	pps                                             float64
	gro, copies, heaps, noMarks, engine, network    bool
	from, to, endpoint, bucket, path                string
	length                                          time.Duration
}

// newPeer returns the hidden command that runs a baseline loop in a process of its own.
// Results are JSON lines; a receiver first prints the port that it is bound to.
func newPeer(g *state.Global) *cobra.Command {
	cmd := &cobra.Command{Use: "peer", Short: "run a baseline loop", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return exit.Fail(exit.Usage, fmt.Errorf("name a loop")) }}
	out := json.NewEncoder(g.Stdout)
	for name, run := range map[string]func(*json.Encoder, *peerFlags) error{
		"memory": peerMemory, "udp-send": peerSend, "udp-recv": peerRecv, "udp": peerPair, "latency": peerLatency,
		"pace": peerPace, "flows": peerFlows, "reorder": peerReorder, "convert": peerConvert, "put": peerPut, "share": peerShare,
		"gpu-reorder": peerGPU(baseline.RunGPUReorder), "gpu-convert": peerGPU(baseline.RunGPUConvert), "gpu-gather": peerGPU(baseline.RunGPUGather)} {
		var f peerFlags
		sub := &cobra.Command{Use: name, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return exit.Fail(exit.Device, run(out, &f)) }}
		f.add(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func (f *peerFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.host, "host", "127.0.0.1", "numeric IPv4 address")
	fs.IntVar(&f.port, "port", 0, "to send to, or to match")
	fs.IntVar(&f.size, "size", 1024, "bytes of a datagram, frame or object")
	fs.IntVar(&f.segments, "segments", 0, "datagrams of one UDP_SEGMENT message")
	fs.Float64Var(&f.pps, "pps", 0, "datagrams a second")
	fs.DurationVar(&f.length, "for", time.Second, "how long")
	fs.BoolVar(&f.noMarks, "no-marks", false, "say nothing at the end")
	fs.BoolVar(&f.gro, "gro", false, "with UDP_GRO")
	fs.BoolVar(&f.copies, "copy", false, "into a second pool")
	fs.BoolVar(&f.heaps, "heaps", false, "into heaps")
	fs.IntVar(&f.buffers, "buffers", 16384, "of a pool")
	fs.IntVar(&f.stride, "stride", 2304, "bytes from buffer to buffer")
	fs.IntVar(&f.batch, "batch", 1024, "packets of a burst")
	fs.IntVar(&f.n, "n", 10000, "datagrams to time, rules, or objects")
	fs.StringVar(&f.from, "from", "", "type of the elements; none: bytes are copied")
	fs.StringVar(&f.to, "to", "", "type that they get")
	fs.BoolVar(&f.network, "network", false, "they have their highest byte first")
	fs.StringVar(&f.endpoint, "endpoint", "", "URL of an S3 store; credentials come from the environment")
	fs.StringVar(&f.bucket, "bucket", "", "of the objects")
	fs.StringVar(&f.path, "path", "", "of the socket of a shared stream")
	fs.BoolVar(&f.engine, "engine", false, "the engine's pacer, not the plain loop")
}

func peerMemory(out *json.Encoder, f *peerFlags) error {
	got, err := baseline.RunMemory(baseline.Memory{Buffers: f.buffers, Stride: f.stride, Batch: f.batch, Bytes: f.size, Port: f.port,
		Copy: f.copies, For: f.length})
	return encode(out, got, err)
}

func peerSend(out *json.Encoder, f *peerFlags) error {
	got, err := baseline.RunSend(f.send(f.port))
	return encode(out, got, err)
}

func (f *peerFlags) send(port int) baseline.Send {
	return baseline.Send{Host: f.host, Port: port, Size: f.size, Segments: f.segments, PPS: f.pps, For: f.length, EndMarks: !f.noMarks}
}

func peerRecv(out *json.Encoder, f *peerFlags) error {
	r, err := f.listen(out, false)
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := r.Receive(peerIdle)
	return encode(out, got, err)
}

// listen binds a receiver and prints its port.
func (f *peerFlags) listen(out *json.Encoder, stamps bool) (*baseline.Receiver, error) {
	r, err := baseline.Listen(baseline.Recv{Host: f.host, Size: f.size, GRO: f.gro, Stamps: stamps})
	if err != nil {
		return nil, err
	}
	return r, out.Encode(map[string]int{"port": r.Port()})
}

// peerPair sends and receives in one process, with one thread each.
func peerPair(out *json.Encoder, f *peerFlags) error {
	r, err := baseline.Listen(baseline.Recv{Host: f.host, Size: f.size, GRO: f.gro})
	if err != nil {
		return err
	}
	defer r.Close()
	var sent baseline.Figures
	over := make(chan error, 1)
	go func() {
		var err error
		sent, err = baseline.RunSend(f.send(r.Port()))
		over <- err
	}()
	got, err := r.Receive(peerIdle)
	if sendErr := <-over; sendErr != nil {
		return sendErr
	}
	got.OfferedPPS = float64(sent.Packets) / sent.Seconds
	return encode(out, got, err)
}

// peerPace sends at f.pps for f.length, also with the engine's pacer, because a script can't process every packet.
func peerPace(out *json.Encoder, f *peerFlags) error {
	got, err := baseline.RunPace(baseline.Pace{PPS: f.pps, N: int(f.pps * f.length.Seconds()), Engine: f.engine})
	if err != nil {
		return err
	}
	return out.Encode(got)
}

// peerFlows looks up packets in a flow table of f.n rules.
func peerFlows(out *json.Encoder, f *peerFlags) error {
	ns, err := baseline.RunFlows(f.n, f.length)
	if err != nil {
		return err
	}
	return out.Encode(map[string]float64{"ns": ns})
}

// peerReorder reorders packets of f.size, or copies them with f.copies.
func peerReorder(out *json.Encoder, f *peerFlags) error {
	rate, err := baseline.RunReorder(f.size, f.copies, f.heaps, f.length)
	return encodeRate(out, rate, err)
}

// peerConvert converts elements in memory.
func peerConvert(out *json.Encoder, f *peerFlags) error {
	rate, err := baseline.RunConvert(f.from, f.to, f.network, f.length)
	return encodeRate(out, rate, err)
}

// peerGPU measures a GPU's kernels and copies.
func peerGPU(run func(time.Duration) (baseline.Rates, error)) func(*json.Encoder, *peerFlags) error {
	return func(out *json.Encoder, f *peerFlags) error {
		rates, err := run(f.length)
		if err != nil {
			return err
		}
		return out.Encode(rates)
	}
}

// peerPut uploads f.n objects of f.size.
func peerPut(out *json.Encoder, f *peerFlags) error {
	got, err := baseline.RunPut(baseline.Store{Endpoint: f.endpoint, Bucket: f.bucket, Prefix: "ready"}, f.size, f.n)
	return encode(out, got, err)
}

// peerShare reads the shared stream at f.path until its end.
func peerShare(out *json.Encoder, f *peerFlags) error {
	got, err := baseline.RunShare(f.path, f.length)
	if err != nil {
		return err
	}
	return out.Encode(got)
}

// encodeRate prints bytes per second, unless err is set.
func encodeRate(out *json.Encoder, rate float64, err error) error {
	if err != nil {
		return err
	}
	return out.Encode(map[string]float64{"bytes_per_second": rate})
}

// peerLatency prints latency percentiles in us.
func peerLatency(out *json.Encoder, f *peerFlags) error {
	r, err := f.listen(out, true)
	if err != nil {
		return err
	}
	defer r.Close()
	ns, err := r.Latency(f.n, peerIdle)
	if err == nil && len(ns) == 0 {
		err = fmt.Errorf("no datagram came to %s", net.JoinHostPort(f.host, strconv.Itoa(r.Port())))
	}
	if err != nil {
		return err
	}
	slices.Sort(ns)
	at := func(share float64) float64 { return float64(ns[int(share*float64(len(ns)-1))]) / 1e3 }
	return out.Encode(map[string]float64{"n": float64(len(ns)), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)})
}

// encode prints a result, unless err is set.
func encode(out *json.Encoder, figures baseline.Figures, err error) error {
	if err != nil {
		return err
	}
	return out.Encode(figures)
}
