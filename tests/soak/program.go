package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// load is one of the things that run at once.
type load struct {
	name    string        // its script's too
	network string        // of its sender; empty: it sends to itself
	posted  int           // the most buffers that its queue keeps at hand for the kernel's next data
	round   time.Duration // the longest that one program runs; 0: to the end
}

var loads = []load{
	{name: "loop"},
	{name: "udp", network: "udp", posted: 256},
	{name: "tcp", network: "tcp", posted: 256},
	{name: "disk", round: 30 * time.Second},
}

// program is a daqiri-run at work.
type program struct {
	r       *rig
	l       *load
	dir     string
	addr    string
	cmd     *exec.Cmd
	senders []*sender
	disk    *disk
	watch   *watch
	began   time.Time
	dropped uint64 // by loopback, before its start
	ends    bool   // a fault has ended it, or will
	exit    int    // the code that it is to end with
	raises  string // the error that it is to end with
	bad     bool   // something is wrong with it: its files stay
}

const patience = 60 * time.Second

func (r *rig) start(l *load, dir string) (*program, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	p := &program{r: r, l: l, dir: dir, began: time.Now()}
	var err error
	if p.dropped, err = loopbackDropped(); err != nil {
		return nil, err
	}
	args := []string{"--summary-json", p.path("summary"), filepath.Join(r.scripts, l.name+".lua"), "--ctl", p.path("ctl"), "--result", p.path("result")}
	if l.network != "" {
		if p.addr, err = freeAddr(l.network); err != nil {
			return nil, err
		}
		args = append(args, "--listen", p.addr)
	}
	if l.name == "disk" {
		p.disk = newDisk(dir)
		args = append(args, "--dir", p.disk.dir)
	}
	out, err := os.Create(p.path("output"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p.cmd = exec.Command(r.program, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is for the rig
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := p.answer("ready", 0); err != nil {
		p.kill()
		return nil, err
	}
	p.watch = newWatch(p.cmd.Process.Pid)
	return p, p.another()
}

// another starts the next sender, where the load has any.
func (p *program) another() error {
	if p.l.network == "" {
		return nil
	}
	life := len(p.senders)
	s, err := newSender(p.l.network, p.addr, life, p.r.lossy, p.path("count"+strconv.Itoa(life)))
	if err == nil {
		p.senders = append(p.senders, s)
	}
	return err
}

// sender is the one that sends now.
func (p *program) sender() *sender { return p.senders[len(p.senders)-1] }

func (p *program) path(name string) string { return filepath.Join(p.dir, name) }

// order asks the script to do something and waits until it reports that it did.
func (p *program) order(word string, n int) (string, error) {
	done, err := os.ReadFile(p.path("ctl.done"))
	if err == nil {
		err = p.tell(word, n)
	}
	if err != nil {
		return "", err
	}
	return p.answer(word, len(done))
}

func (p *program) tell(word string, n int) error {
	f, err := os.OpenFile(p.path("ctl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d\n", word, n)
	return errors.Join(err, f.Close())
}

// answer waits for the script's word behind the first `from` bytes of what it reported.
func (p *program) answer(word string, from int) (string, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(p.path("ctl.done"))
		if len(text) <= from {
			if !alive(p.cmd.Process.Pid) {
				return "", fmt.Errorf("the program ended early:\n%s", p.output())
			}
			continue
		}
		for line := range strings.Lines(string(text[from:])) {
			if printed, ok := strings.CutPrefix(strings.TrimSpace(line), word); ok {
				return strings.TrimSpace(printed), nil
			}
		}
	}
	return "", fmt.Errorf("%s: no answer in %v", word, patience)
}

// output is what the program printed, its end.
func (p *program) output() string {
	text, _ := os.ReadFile(p.path("output"))
	return string(text[max(0, len(text)-2000):])
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.disk.remove()
}

// finish ends the senders, lets what is on its way arrive, ends the program in order, and checks everything.
func (p *program) finish() {
	for k, s := range p.senders {
		if k == len(p.senders)-1 {
			s.end(false)
		}
	}
	lost := p.settle()
	left := p.watch.end()
	if err := p.tell("stop", 0); err != nil {
		p.wrong("%v", err)
	}
	if !p.ended() {
		p.wrong("it did not end within %v after stop", patience)
		p.kill()
		return
	}
	if code := p.cmd.ProcessState.ExitCode(); code != p.exit {
		p.wrong("exit code %d, want %d:\n%s", code, p.exit, p.output())
	}
	p.check(lost, left)
	p.disk.remove()
	if !p.bad {
		_ = os.RemoveAll(p.dir)
	}
}

func (p *program) ended() bool {
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

func (p *program) wrong(format string, args ...any) {
	p.bad = true
	p.r.wrong(p.l.name, format, args...)
}

// settle waits until the program has taken what the load's sockets hold, and returns the datagrams that the kernel lost there.
func (p *program) settle() (lost uint64) {
	switch p.l.network {
	case "udp":
		return p.settleDatagrams()
	case "tcp":
		p.settleStreams()
	default:
		time.Sleep(500 * time.Millisecond)
	}
	return 0
}

func (p *program) settleDatagrams() (lost uint64) {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		waiting, lost, err := udpSocket(p.addr)
		if err != nil {
			p.wrong("%v", err)
			return 0
		}
		if waiting == 0 {
			return lost
		}
		if time.Now().After(deadline) {
			p.wrong("%d bytes wait in its socket, and nothing takes them", waiting)
			return lost
		}
	}
}

// settleStreams waits until the script has seen the ends of its senders' streams.
func (p *program) settleStreams() {
	connected := 0
	for _, s := range p.senders {
		if s.count.begun.Load() > 0 {
			connected++
		}
	}
	if _, err := p.order("ended", connected); err != nil {
		p.wrong("the ends of %d streams: %v", connected, err)
	}
}

// freeAddr is a local address that nothing uses now.
func freeAddr(network string) (string, error) {
	if network == "udp" {
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		return c.LocalAddr().String(), c.Close()
	}
	c, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return c.Addr().String(), c.Close()
}
