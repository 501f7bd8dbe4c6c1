package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
	"github.com/daqiri/daqiri-run/tests/require"
)

// engine is one row of the contract suite: a configuration in which a transmit queue on interface a feeds two receive queues (one for sockets) on
// interface b.
type engine struct {
	name     string
	frames   bool   // queues hold frames, and flows are available
	endpoint string // URI without the port, for sockets
	framed   bool
	copies   bool // the sides have buffers of different sizes, so packets are copied
	direct   bool
	virtual  bool
	veth     bool   // the interfaces are a pair of virtual Ethernet devices
	dpdk     bool   // through DPDK's af_packet devices, or
	cards    string // these two PCI cards on one wire, "ADDRESS,ADDRESS"
	devices  string // these two Linux interfaces on one wire, "NAME,NAME", that are up
	rdma     string // RDMA transport between two devices on one wire
	server   string // address of the server, b
	client   string // address of the client, a
	verbs    bool   // uses the stand-in for libibverbs
	driver   string // expected in the report, with veth or devices
	faults   string // wire options after the clock
	tx       string // appended to interface a's tx section
	key      string // appended to both interfaces
}

// engines returns every engine in worker and in direct mode.
func engines() []engine {
	base := []engine{
		{name: "loop", frames: true},
		{name: "loop-copy", frames: true, copies: true},
		{name: "loop-virtual", frames: true, virtual: true},
		{name: "xdp", frames: true, veth: true, driver: "AF_XDP"},
		{name: "xdp-packet", frames: true, veth: true, driver: "AF_PACKET"},
		{name: "packet", frames: true, veth: true, driver: "AF_PACKET", key: "\n      engine: packet"},
		{name: "dpdk", frames: true, veth: true, dpdk: true},
		{name: "ibverbs", frames: true, verbs: true, driver: "raw packets over verbs", key: "\n      engine: ibverbs"},
		{name: "udp", endpoint: "udp://127.0.0.1"},
		{name: "udp6", endpoint: "udp://[::1]"},
		{name: "tcp", endpoint: "tcp://127.0.0.1", framed: true},
	}
	if cards := os.Getenv("DAQIRI_TEST_CARDS"); cards != "" { // in a virtual machine, one test at a time
		base = append(base, engine{name: "cards", frames: true, dpdk: true, cards: cards})
	}
	if devices := os.Getenv("DAQIRI_TEST_DEVICES"); devices != "" { // same environment
		_, right, _ := strings.Cut(devices, ",")
		base = append(base, engine{name: "zero-copy", frames: true, devices: devices, driver: "AF_XDP on " + right + ": zero-copy"})
	}
	if addresses := os.Getenv("DAQIRI_TEST_RDMA"); addresses != "" { // same environment
		server, client, _ := strings.Cut(addresses, ",")
		for _, transport := range []string{"RC", "UC", "UD"} {
			base = append(base, engine{name: "rdma-" + strings.ToLower(transport), rdma: transport, server: server, client: client})
		}
	}
	var all []engine
	for _, e := range base {
		if !e.virtual {
			worker := e
			worker.name += "/worker"
			all = append(all, worker)
		}
		e.name, e.direct = e.name+"/direct", true
		all = append(all, e)
	}
	return all
}

// lacks is the error of a test whose requirement this machine does not meet.
type lacks struct {
	what string // name of the requirement in DAQIRI_REQUIRE
	err  error
}

func (l lacks) Error() string { return l.what + ": " + l.err.Error() }

// skip skips a test for a missing requirement, or fails it if DAQIRI_REQUIRE names the requirement.
func skip(t *testing.T, l lacks) {
	t.Helper()
	require.Lack(t, l.what, l.err.Error())
}

// freePort returns a port that is currently free.
func freePort(endpoint string) (int, error) {
	_, host, _ := strings.Cut(endpoint, "://")
	port, err := require.FreePort(strings.Trim(host, "[]"))
	if err != nil && strings.Contains(host, "[") {
		return 0, lacks{"ipv6", err}
	} else if err != nil {
		return 0, lacks{"loopback", err}
	}
	return port, nil
}

// yaml returns the engine's configuration. extra is appended to interface b's rx section.
func (e engine) yaml(extra string) (string, error) {
	poll := "cpu_core: -1\n          batch_size: 32\n          timeout_us: 200"
	if e.direct {
		poll = "poll_mode: direct\n          batch_size: 32"
	}
	loopback, stream, rxBuf := "", "socket", 2048
	left, right, kind := "left", "right", "host"
	if e.dpdk {
		if err := findDPDK(); err != nil {
			return "", err
		}
		left, right = vdev("net_af_packet", "iface=left"), vdev("net_af_packet", "iface=right")
		if e.cards != "" {
			left, right, _ = strings.Cut(e.cards, ",")
			kind = "huge"
		}
	}
	if e.verbs {
		if err := findVerbs(); err != nil {
			return "", err
		}
		pair := 2 * verbsPairs.Add(1)
		left, right = fmt.Sprintf("fake%d", pair-2), fmt.Sprintf("fake%d", pair-1)
	}
	if e.devices != "" {
		left, right, _ = strings.Cut(e.devices, ",")
	}
	a, b := e.key, e.key
	if e.frames {
		stream, loopback = "raw", "\n    loopback: {mode: sw, seed: 7}"
		if e.veth || e.dpdk || e.verbs || e.devices != "" {
			loopback = ""
		}
		if e.virtual {
			loopback = "\n    loopback: {mode: sw, seed: 7, clock: virtual" + e.faults + "}"
		}
	} else if e.rdma != "" {
		b = fmt.Sprintf("\n      socket_config:\n        mode: server\n        local_addr: roce://%s:%d\n      roce_config: {transport_mode: %s}", e.server, 20000+rand.IntN(40000), e.rdma)
		a = fmt.Sprintf("\n      socket_config:\n        mode: client\n        local_addr: roce://%s\n      roce_config: {transport_mode: %s}", e.client, e.rdma)
	} else {
		port, err := freePort(e.endpoint)
		if err != nil {
			return "", err
		}
		framing := ""
		if e.framed {
			framing = "\n        framing: {length_prefix: 2}"
		}
		b = fmt.Sprintf("\n      socket_config:\n        mode: server\n        local_addr: %s:%d%s", e.endpoint, port, framing)
		a = fmt.Sprintf("\n      socket_config:\n        mode: client\n        remote_addr: %s:%d%s", e.endpoint, port, framing)
	}
	if e.copies {
		rxBuf = 4096
	}
	second := ""
	if e.frames {
		second = fmt.Sprintf("\n        - {name: rx1, id: 1, memory_regions: [in], %s}", strings.ReplaceAll(poll, "\n          ", ", "))
	}
	return fmt.Sprintf(`
daqiri:
  cfg:
    version: 1
    stream_type: %s
    master_core: 0%s
    memory_regions:
    - {name: out, kind: %s, affinity: 0, num_bufs: 1024, buf_size: 2048}
    - {name: in, kind: %s, affinity: 0, num_bufs: 1024, buf_size: %d}
    interfaces:
    - name: a
      address: %s%s
      tx:
        queues:
        - name: tx0
          id: 0
          %s
          memory_regions: [out]
%s    - name: b
      address: %s%s
      rx:
        queues:
        - name: rx0
          id: 0
          %s
          memory_regions: [in]%s
%s`, stream, loopback, kind, kind, rxBuf, left, a, strings.Replace(poll, "\n          timeout_us: 200", "", 1), e.tx, right, b, poll, second, extra), nil
}

// bench is a session under test with its task and queues.
type bench struct {
	engine
	s      *session.Session
	me     *task.Task
	tx, rx *session.Queue
	l      *session.Leases
}

// vethPair moves the calling thread to a new network namespace with the pair left and right, which its task's sockets and workers share. The
// namespace ends with the task's thread and has no other traffic. AF_XDP rejects devices with more queues than an interface may have, which selects
// AF_PACKET.
func vethPair(driver string) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return lacks{"netns", err}
	}
	// Without this, a device whose MTU is raised above IPv6's minimum starts to send.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	queues := 1
	if driver == "AF_PACKET" {
		queues = 33
	}
	return addPair(queues)
}

// addPair creates the pair in the calling thread's namespace.
func addPair(queues int) error {
	for _, line := range []string{
		fmt.Sprintf("link add left numrxqueues %d type veth peer name right numrxqueues %[1]d", queues),
		"link set left addrgenmode none up",
		"link set right addrgenmode none up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return lacks{"netns", fmt.Errorf("ip %s: %w: %s", line, err, out)}
		}
	}
	return nil
}

// open opens the engine's session on the calling task. It retries with another port if the free one is taken meanwhile, for example by a parallel
// test.
func (e engine) open(me *task.Task, extra string) (b *bench, err error) {
	for range 20 {
		if b, err = e.tryOpen(me, extra); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return b, err
}

func (e engine) tryOpen(me *task.Task, extra string) (*bench, error) {
	if e.veth {
		if err := vethPair(e.driver); err != nil {
			return nil, err
		}
	}
	text, err := e.yaml(extra)
	if err != nil {
		return nil, err
	}
	cfg, _, err := spec.ParseText(strings.ReplaceAll(e.name, "/", "-")+".yaml", text, spec.Options{})
	if err != nil {
		return nil, err
	}
	s, err := session.Open(cfg, session.Env{Scheduler: me.Scheduler(), Owner: me})
	if err != nil {
		return nil, err
	}
	if report := strings.Join(s.Report(), "\n"); e.driver != "" && !strings.Contains(report, "interface b: "+e.driver) {
		s.Close()
		return nil, lacks{"xdp", fmt.Errorf("%s does not serve the interface:\n%s", e.driver, report)}
	}
	b := &bench{engine: e, s: s, me: me, l: session.NewLeases()}
	if b.tx, err = s.TxQueue("a", "tx0"); err == nil {
		b.rx, err = s.RxQueue("b", "0")
	}
	if err == nil && e.rdma != "" {
		_, err = b.tx.Interface().Connect(session.Connecting{Address: b.rx.Interface().Address()})
	}
	return b, err
}

// onTask runs fn as a task and waits for its end.
func onTask(t *testing.T, fn func(me *task.Task) error) {
	t.Helper()
	sched := task.NewScheduler()
	me, err := sched.NewTask("main")
	if err != nil {
		t.Fatal(err)
	}
	me.Start(fn)
	select {
	case <-me.Done():
	case <-time.After(time.Minute):
		t.Fatal("the task does not end")
	}
	sched.Close()
	var l lacks
	if errors.As(me.Err(), &l) {
		skip(t, l)
	}
	if me.Err() != nil {
		t.Error(me.Err())
	}
}

// withBench runs fn on a session of every engine, and then checks that all buffers are back in their pools and that the accounts add up.
func withBench(t *testing.T, extra string, fn func(t *testing.T, b *bench) error) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			onTask(t, func(me *task.Task) error {
				b, err := e.open(me, extra)
				if err != nil {
					return err
				}
				defer func() {
					b.quiesce()
					b.l.ReleaseAll()
					if err := b.s.Finish(); err != nil {
						t.Error(err)
					}
					if bad := b.s.Ledger().Balance(); bad != nil {
						t.Errorf("accounts: %v", bad)
					}
					if n := b.s.Close(); n != 0 {
						t.Errorf("%d buffers are not in their pools", n)
					}
				}()
				return fn(t, b)
			})
		})
	}
}

// quiesce stops the traffic and frees the bursts that wait in taps.
func (b *bench) quiesce() {
	for b.s.Quiesce(time.Second) > 0 {
		if it, err := b.me.Wait(b.me.Now()); err == nil && it != nil && it.Kind == task.Burst {
			_ = b.l.Take(it).Free()
		}
	}
}

// deadline returns the timeout of a wait that must succeed.
func (b *bench) deadline() int64 { return b.me.Now() + int64(20*time.Second) }

const headers = 14 + 20 + 8

// put writes packet seq into p: a UDP frame to a port, or a bare payload, with the number at the start of the payload and a pattern after it.
func (b *bench) put(p []byte, seq uint64, port uint16) {
	if b.frames {
		clear(p[:headers])
		copy(p, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45})
		binary.BigEndian.PutUint16(p[16:], uint16(len(p)-14))
		copy(p[22:], []byte{64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
		binary.BigEndian.PutUint16(p[34:], 4000)
		binary.BigEndian.PutUint16(p[36:], port)
		binary.BigEndian.PutUint16(p[38:], uint16(len(p)-34))
		p = p[headers:]
	}
	binary.BigEndian.PutUint64(p, seq)
	for i := 8; i < len(p); i++ {
		p[i] = byte(seq) + byte(i)
	}
}

// seq returns the number of a packet and checks the pattern after it.
func (b *bench) seq(p []byte) (uint64, error) {
	if b.frames {
		p = p[headers:]
	}
	seq := binary.BigEndian.Uint64(p)
	for i := 8; i < len(p); i++ {
		if p[i] != byte(seq)+byte(i) {
			return seq, fmt.Errorf("packet %d: byte %d is %#x", seq, i, p[i])
		}
	}
	return seq, nil
}

// fill writes packets of 100 bytes; they have a valid source address, because a bridge drops other frames.
func (b *bench) fill(x *session.Burst) error {
	if err := x.SetLen(0, -1, 100); err != nil {
		return err
	}
	for i := range x.N() {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		b.put(p, uint64(i), 7148)
	}
	return nil
}

// length returns the length of packet seq: at least 60, so that no engine pads it.
func (b *bench) length(seq uint64) int { return 60 + int(seq*37)%1000 }

// begin taps the receive queue and starts the session.
func (b *bench) begin(policy session.Policy) (*session.Tap, error) {
	tap, err := b.rx.Tap(b.me, nil, session.TapOptions{Policy: policy})
	if err == nil {
		err = b.s.Start(b.me)
	}
	return tap, err
}

// send sends packets first ... first + n - 1 in one burst.
func (b *bench) send(first uint64, n int, port uint16) error {
	x, err := b.tx.Alloc(b.l, n)
	for errors.Is(err, session.ErrNoBurst) || errors.Is(err, session.ErrNoPacket) {
		if _, err = b.me.Wait(b.me.Now() + 1e6); err == nil {
			x, err = b.tx.Alloc(b.l, n)
		}
	}
	if err != nil {
		return err
	}
	for i := range n {
		seq := first + uint64(i)
		if err := x.SetLen(0, i, b.length(seq)); err != nil {
			return err
		}
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		b.put(p, seq, port)
	}
	return b.tx.Send(x)
}

// receive takes n packets from a tap and calls check for each.
func (b *bench) receive(tap *session.Tap, n int, check func(x *session.Burst, i int) error) error {
	for got := 0; got < n; {
		x, err := tap.Next(b.l, b.deadline())
		if err != nil {
			return fmt.Errorf("after %d of %d packets: %w", got, n, err)
		}
		for i := range x.N() {
			if err := check(x, i); err != nil {
				return err
			}
		}
		got += x.N()
		if err := x.Free(); err != nil {
			return err
		}
	}
	return nil
}
