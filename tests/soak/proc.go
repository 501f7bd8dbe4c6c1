package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what a process holds.
type usage struct {
	rssKB, threads, files int
}

func readUsage(pid int) (u usage, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "VmRSS:":
			u.rssKB, _ = strconv.Atoi(f[1])
		case "Threads:":
			u.threads, _ = strconv.Atoi(f[1])
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	u.files = len(files)
	return u, err
}

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// opening is so many looks in which a process opens what it keeps: a session's first packets bring files and threads.
const opening = 4

// watch checks a process four times a second.
type watch struct {
	pid     int
	first   usage // the most of its opening
	rss     []int
	stopped chan bool
	done    chan bool
}

func newWatch(pid int) *watch {
	w := &watch{pid: pid, stopped: make(chan bool), done: make(chan bool)}
	w.first, _ = readUsage(pid)
	go func() {
		defer close(w.done)
		for {
			select {
			case <-w.stopped:
				return
			case <-time.After(250 * time.Millisecond):
			}
			if u, err := readUsage(pid); err == nil {
				w.rss = append(w.rss, u.rssKB)
				if len(w.rss) <= opening {
					w.first.files, w.first.threads = max(w.first.files, u.files), max(w.first.threads, u.threads)
				}
			}
		}
	}()
	return w
}

// end stops watching and returns what the process holds now: of files and threads the least of some looks, as some are
// there for a moment only.
func (w *watch) end() usage {
	close(w.stopped)
	<-w.done
	least, _ := readUsage(w.pid)
	for range opening {
		time.Sleep(50 * time.Millisecond)
		if u, err := readUsage(w.pid); err == nil {
			least = usage{rssKB: u.rssKB, files: min(least.files, u.files), threads: min(least.threads, u.threads)}
		}
	}
	return least
}

// growth is by how many KB the memory's median in the last third lies above that of the third before; not ok: it
// was watched too briefly to tell.
func (w *watch) growth() (kb int, ok bool) {
	const least = 4 * 60
	n := len(w.rss)
	if n < least {
		return 0, false
	}
	return median(w.rss[2*n/3:]) - median(w.rss[n/3:2*n/3]), true
}

func median(list []int) int {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// udpSocket reads what the kernel reports of the socket bound to addr: bytes that wait, datagrams that it lost.
func udpSocket(addr string) (waiting, lost uint64, err error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0, 0, err
	}
	port := fmt.Sprintf(":%04X", at.Port())
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 13 || !strings.HasSuffix(f[1], port) {
				continue
			}
			_, rx, _ := strings.Cut(f[4], ":")
			w, _ := strconv.ParseUint(rx, 16, 64)
			n, _ := strconv.ParseUint(f[12], 10, 64)
			waiting, lost = waiting+w, lost+n
		}
	}
	return waiting, lost, nil
}

// loopbackDropped reads how many packets the loopback interface has dropped since the machine's start.
func loopbackDropped() (uint64, error) {
	text, err := os.ReadFile("/sys/class/net/lo/statistics/rx_dropped")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// shutSocket shuts down one socket of a process, for streams a connected one, as if it had been closed under it.
func shutSocket(pid, want, how int) error {
	const pidfdOpen, pidfdGetfd = 434, 438 // on every architecture
	p, _, e := syscall.Syscall(pidfdOpen, uintptr(pid), 0, 0)
	if e != 0 {
		return fmt.Errorf("pidfd_open: %w", e)
	}
	defer func() { _ = syscall.Close(int(p)) }()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	for _, f := range files {
		n, _ := strconv.Atoi(f.Name())
		fd, _, e := syscall.Syscall(pidfdGetfd, p, uintptr(n), 0)
		if e != 0 {
			return fmt.Errorf("pidfd_getfd: %w", e)
		}
		_, alone := syscall.Getpeername(int(fd))
		kind, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
		domain, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_DOMAIN)
		if kind == want && domain != syscall.AF_UNIX && (alone == nil || kind == syscall.SOCK_DGRAM) {
			err = syscall.Shutdown(int(fd), how)
			_ = syscall.Close(int(fd))
			if errors.Is(err, syscall.ENOTCONN) && kind == syscall.SOCK_DGRAM {
				err = nil // Linux returns the error, and does it all the same
			}
			return err
		}
		_ = syscall.Close(int(fd))
	}
	return fmt.Errorf("it has no such socket")
}
