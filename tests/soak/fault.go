package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// fault is something that goes wrong.
type fault struct {
	name  string
	loads []string
	ends  bool // the program's round is over with it
	do    func(p *program, chance *rand.Rand) (output string, err error)
}

var faults = []fault{
	{"peer-killed", []string{"udp", "tcp"}, false, peerKilled},
	{"socket-closed", []string{"udp", "tcp"}, false, socketClosed},
	{stepsClock, []string{"udp"}, false, clockStep},
	{"handler-error", []string{"disk"}, true, handlerError},
	{"slow-handler", []string{"loop", "udp", "tcp", "disk"}, false, slowHandler},
	{"slow-disk", []string{"disk"}, false, slowDisk},
	{"full-disk", []string{"disk"}, true, fullDisk},
	{"stop-cont", []string{"loop", "udp", "tcp", "disk"}, false, stopCont},
	{"pool-exhaustion", []string{"loop", "udp", "tcp"}, false, poolExhaustion},
	{"flow-changes", []string{"loop"}, false, flowChanges},
	{"open-close", []string{"loop"}, false, openClose},
}

const stepsClock = "clock-step"

func faultNames() []string {
	var names []string
	for k := range faults {
		names = append(names, faults[k].name)
	}
	return names
}

// between is a random time.
func between(chance *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(chance.Int64N(int64(high-low)))
}

func peerKilled(p *program, _ *rand.Rand) (string, error) {
	s := p.sender()
	s.end(true)
	return fmt.Sprintf("sender %d after %d packets", s.life, s.count.done.Load()), p.another()
}

func socketClosed(p *program, _ *rand.Rand) (string, error) {
	s := p.sender()
	if p.l.network == "udp" { // continues receiving what comes, and reports it
		return "shut down for reading", shutSocket(p.cmd.Process.Pid, syscall.SOCK_DGRAM, syscall.SHUT_RD)
	}
	if err := shutSocket(p.cmd.Process.Pid, syscall.SOCK_STREAM, syscall.SHUT_RDWR); err != nil {
		return "", err
	}
	s.cut = true
	time.AfterFunc(3*time.Second, func() { _ = s.cmd.Process.Kill() }) // its window may be closed: it would notice in minutes
	_ = s.cmd.Wait()
	return fmt.Sprintf("of sender %d after %d packets", s.life, s.count.done.Load()), p.another()
}

func handlerError(p *program, _ *rand.Rand) (string, error) {
	p.raises = "the rig wants an error in the handler"
	if _, err := p.order("error", 0); err != nil {
		return "", err
	}
	return "the session ends in order", nil
}

func slowHandler(p *program, chance *rand.Rand) (string, error) {
	ms := 1 + chance.IntN(50)
	_, err := p.order("slow", ms)
	time.Sleep(time.Second)
	return fmt.Sprintf("%d ms a burst for a second", ms), err
}

func slowDisk(p *program, chance *rand.Rand) (string, error) {
	if p.disk.lack != nil {
		return fmt.Sprintf("skipped: no file system of its own: %v", p.disk.lack), nil
	}
	d := between(chance, 200*time.Millisecond, 2*time.Second)
	if err := p.disk.freeze(); err != nil {
		return "", err
	}
	time.Sleep(d)
	return fmt.Sprintf("frozen for %v", d.Round(time.Millisecond)), p.disk.thaw()
}

func fullDisk(p *program, _ *rand.Rand) (string, error) {
	if p.disk.lack != nil {
		return fmt.Sprintf("skipped: no file system of its own: %v", p.disk.lack), nil
	}
	const storage = 6 // daqiri-run's exit code
	p.exit = storage
	if err := p.disk.fill(); err != nil {
		return "", err
	}
	time.Sleep(time.Second)
	return "no room left", nil
}

func stopCont(p *program, chance *rand.Rand) (string, error) {
	d := between(chance, 100*time.Millisecond, 1500*time.Millisecond)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return "", err
	}
	time.Sleep(d)
	return fmt.Sprintf("stopped for %v", d.Round(time.Millisecond)), p.cmd.Process.Signal(syscall.SIGCONT)
}

func poolExhaustion(p *program, _ *rand.Rand) (string, error) {
	_, err := p.order("hold", 1e6)
	time.Sleep(1500 * time.Millisecond)
	return "the script kept all bursts for a second", err
}

// clockStep steps the clock of the whole machine, for a moment; the script looks whether its times stay in order.
func clockStep(_ *program, chance *rand.Rand) (string, error) {
	d := between(chance, time.Second, 100*time.Second)
	if chance.IntN(2) == 0 {
		d = -d
	}
	if err := stepClock(d); err != nil {
		return "", fmt.Errorf("it needs root: %w", err)
	}
	time.Sleep(between(chance, 300*time.Millisecond, 1500*time.Millisecond))
	return fmt.Sprintf("by %v and home", d.Round(time.Millisecond)), stepClock(-d)
}

func stepClock(d time.Duration) error {
	tv := syscall.NsecToTimeval(time.Now().Add(d).UnixNano())
	return syscall.Settimeofday(&tv)
}

func flowChanges(p *program, _ *rand.Rand) (string, error) {
	began := time.Now()
	output, err := p.order("flows", p.r.few(10000, 300))
	return fmt.Sprintf("%s, in %.1f s", output, time.Since(began).Seconds()), err
}

func openClose(p *program, _ *rand.Rand) (string, error) {
	n := p.r.few(1000, 20)
	began := time.Now()
	output, err := p.order("cycles", n)
	return fmt.Sprintf("%s, in %.1f s", output, time.Since(began).Seconds()), err
}

// few is n, or less in a brief run.
func (r *rig) few(n, brief int) int {
	if r.brief {
		return brief
	}
	return n
}
