package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// longest is the size of the largest payload of a socket, and of the largest frame of an interface whose MTU is unknown, in bytes.
const longest = 9216

// liveTime is how long a live source is read by default.
const liveTime = 2 * time.Second

// captureMagics are the first bytes of captures: pcap with times in us and ns, of either byte order, and pcapng.
var captureMagics = []string{"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1", "\x0a\x0d\x0d\x0a"}

// read reads the source, whatever it is.
func (r *Result) read(ctx context.Context) error {
	info, err := os.Stat(r.Source)
	switch {
	case r.Source == "-":
		return r.packets(ctx, map[string]any{"address": "pcap:-", "replay": map[string]any{"speed": "max"}}, 1<<16, false)
	case err == nil && info.IsDir():
		return exit.Fail(exit.Usage, fmt.Errorf("cannot read %s: it is a folder (expected a capture, a block file or a file of samples)", r.Source))
	case err == nil:
		return r.file(ctx)
	}
	if mtu, ok := deviceMTU(r.Source); ok {
		return r.packets(ctx, map[string]any{"address": r.Source, "engine": "packet"}, mtu+18, true)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(r.Source, "udp://"))
	if err != nil {
		return exit.Fail(exit.Usage, fmt.Errorf("%s is not a valid source (expected a file, a Linux interface, [HOST]:PORT or udp://HOST:PORT)", r.Source))
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return r.packets(ctx, map[string]any{"address": host, "socket_config": map[string]any{"mode": "server", "local_addr": "udp://" + net.JoinHostPort(host, port)}},
		longest, true)
}

// deviceMTU returns the MTU of a Linux interface, or false if there is none of that name.
func deviceMTU(name string) (int, bool) {
	text, err := os.ReadFile(filepath.Join("/sys/class/net", filepath.Base(name), "mtu"))
	if err != nil || name != filepath.Base(name) {
		return 0, false
	}
	mtu, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return min(mtu, 1<<16), err == nil
}

// file reads a capture, a block file or a file of samples.
func (r *Result) file(ctx context.Context) error {
	f, err := os.Open(r.Source)
	if err != nil {
		return exit.Fail(exit.Usage, err)
	}
	defer f.Close()
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return exit.Fail(exit.Storage, err)
	}
	suffix := filepath.Ext(r.Source)
	isCapture := slices.Contains(captureMagics, string(head[:min(n, 4)])) || suffix == ".pcap" || suffix == ".pcapng"
	switch {
	case n == 0:
		return exit.Fail(exit.Usage, fmt.Errorf("cannot read samples of %s: the file is empty", r.Source))
	case isCapture:
		return r.packets(ctx, map[string]any{"address": "pcap:" + r.Source, "replay": map[string]any{"speed": "max"}}, 1<<16, false)
	case r.Format != nil:
		return exit.Fail(exit.Usage, fmt.Errorf("cannot read packets of %s: it is not a capture: leave out --format", r.Source))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return exit.Fail(exit.Storage, err)
	}
	if string(head) == blockMagic {
		return r.blocks(ctx, f)
	}
	return r.raw(ctx, f)
}

// packets reads packets of an interface of the engine until the source ends, or until the time is up.
func (r *Result) packets(ctx context.Context, port map[string]any, size int, live bool) error {
	if r.Type == nil && (r.Format == nil || r.Format.Spec.Samples == nil) {
		return errNoType
	}
	port["name"], r.live = "input", live
	port["rx"] = map[string]any{"queues": []any{map[string]any{"name": "rx", "id": 0, "cpu_core": -1, "batch_size": 64, "timeout_us": 1000,
		"memory_regions": []any{"packets"}}}}
	stream, buffers := "raw", 16384
	if port["socket_config"] != nil {
		stream = "socket"
	}
	if size > longest {
		buffers = 1024
	}
	cfg, _, err := spec.ParseTable(map[string]any{"daqiri": map[string]any{"cfg": map[string]any{"version": 1, "master_core": 0, "stream_type": stream,
		"interfaces":     []any{port},
		"memory_regions": []any{map[string]any{"name": "packets", "kind": "host", "affinity": 0, "buf_size": max(size, 2030), "num_bufs": buffers}}}}}, spec.Options{})
	if err != nil {
		return exit.Fail(exit.Usage, fmt.Errorf("cannot open %s: %w", r.Source, err))
	}
	scheduler := task.NewScheduler()
	defer scheduler.Close()
	me, err := scheduler.NewTask("look")
	if err != nil {
		return exit.Fail(exit.Internal, err)
	}
	me.Start(func(me *task.Task) error { return r.receive(me, cfg, live) })
	select {
	case <-me.Done():
	case <-ctx.Done():
		me.Stop("interrupted")
		<-me.Done()
	}
	return me.Err()
}

// receive is the task that receives the packets.
func (r *Result) receive(me *task.Task, cfg *spec.Config, live bool) error {
	s, err := session.Open(cfg, session.Env{Scheduler: me.Scheduler(), Owner: me})
	if err != nil {
		return exit.Fail(exit.Device, err)
	}
	defer s.Close()
	q := s.Interfaces()[0].RxQueues()[0]
	policy := session.Wait
	if live {
		policy = session.Drop
	}
	if _, err = q.Tap(me, nil, session.TapOptions{Policy: policy, Depth: 256}); err == nil {
		err = s.Start(me)
	}
	if err != nil {
		return exit.Fail(exit.Device, err)
	}
	seconds := r.Limit
	if seconds == 0 && live && r.Update == nil {
		seconds = liveTime
	}
	until := task.Never
	if seconds > 0 {
		until = me.In(int64(seconds))
	}
	leases := session.NewLeases()
	defer leases.ReleaseAll()
	if err := r.serve(me, s, leases, until); err != nil {
		return err
	}
	for s.Quiesce(0) > 0 {
		if it, err := me.Wait(0); err != nil || it == nil || !r.burst(leases, it) {
			break
		}
	}
	r.Err = s.Finish()
	r.Dropped = dropped(s.Ledger())
	return nil
}

// serve receives bursts until a time, until the task is stopped, or until the capture ends.
func (r *Result) serve(me *task.Task, s *session.Session, leases *session.Leases, until int64) error {
	check := 20 * time.Millisecond // how often the end of a capture is looked for
	if r.live {
		check = period / 5
	}
	quiet := false
	for me.Now() < until {
		if r.due() {
			r.Dropped = dropped(s.Ledger())
		}
		if err := r.tick(); err != nil {
			return exit.Fail(exit.Internal, err)
		}
		it, err := me.Wait(min(until, me.In(int64(check))))
		switch {
		case err != nil:
			return exit.Fail(exit.Internal, err)
		case it == nil:
			some, over := s.Replays()
			was := quiet
			if quiet = some && over && s.Quiet(s.Ledger()); quiet && was {
				return nil
			}
		case it.Kind == task.Stop:
			return nil
		default:
			quiet = false
			r.burst(leases, it)
		}
	}
	return nil
}

// burst adds the packets of a burst. It returns false for another item.
func (r *Result) burst(leases *session.Leases, it *task.Item) bool {
	if it.Kind != task.Burst {
		return false
	}
	b := leases.Take(it)
	frame := b.Queue().Layer() == session.LayerFrame
	for i := range b.N() {
		if packet, err := b.Packet(0, i); err == nil {
			r.packet(packet, frame)
		}
	}
	b.EndHandler()
	return true
}

// dropped returns the packets that a ledger counts as dropped.
func dropped(l *stats.Ledger) (n uint64) {
	for i := range l.Lines {
		for _, x := range l.Lines[i].Dropped {
			n += x.N
		}
	}
	return n
}

// errNoType is the error of a source that does not state its type of samples.
var errNoType = exit.Fail(exit.Usage, errors.New("cannot read samples: their type is unknown: set --samples, such as --samples ci16le (daqiri-run help samples)"))
