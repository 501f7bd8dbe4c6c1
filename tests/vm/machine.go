package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed guest.sh
var guestScript string

// machine is a virtual machine that runs one command as root, on this machine's files.
type machine struct {
	nics           int // e1000 cards on one hub, bound to uio_pci_generic
	virtio         int // virtio-net cards on another hub, which the kernel drives
	queues         int // of each of these; more than one each way need root
	modules        []string
	memory         int // MB
	timeout        time.Duration
	share          string   // folder in which what is written stays; empty: none
	dir            string   // the command's
	env            []string // "NAME=value", beside what it sees of this machine's
	stdout, stderr io.Writer
}

const firstSlot = 5 // of the PCI bus, for the cards; guest.sh knows it too

const (
	boots    = 4               // of which one has to come to the command's end
	bootTime = 2 * time.Minute // it takes 5 to 12 s
	beatTime = time.Minute     // a machine whose kernel works reports it every 5 s
)

// errBoot is the end of a machine that did not come as far as the command, or whose kernel stopped behind that: an emulated
// kernel on a busy machine now and then does, while it patches itself. A command that hangs is none: the kernel's beat continues.
var (
	errBoot = errors.New("the machine ended in its boot")
	errStop = errors.New("the machine's kernel stopped")
)

// run returns the command's exit code; 128 and the signal's number where a signal killed it. An error reports why there
// is none. A machine that ends in its boot, or whose kernel stops, is booted again, and why is given.
func (m *machine) run(ctx context.Context, k kernel, args []string) (int, error) {
	timed, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	for n := 1; ; n++ {
		code, err := m.try(ctx, timed, k, args)
		if !errors.Is(err, errBoot) && !errors.Is(err, errStop) || n == boots {
			return code, err
		}
		fmt.Fprintf(os.Stderr, "vm: boot %d of at most %d: %v\n", n, boots, err)
		for _, w := range []io.Writer{m.stdout, m.stderr} {
			if b, ok := w.(*bytes.Buffer); ok {
				b.Reset()
			}
		}
	}
}

// try is run with one boot, until timed has ended.
func (m *machine) try(ctx, timed context.Context, k kernel, args []string) (int, error) {
	exchange, err := os.MkdirTemp("", "vm-")
	if err != nil {
		return exitFault, err
	}
	defer func() { _ = os.RemoveAll(exchange) }()
	if err := m.prepare(exchange, k, args); err != nil {
		return exitFault, err
	}
	running, stop := context.WithCancelCause(timed)
	defer stop(nil)
	go watch(running, exchange, stop)
	err = m.emulate(running, exchange, k)
	if running.Err() == nil && err != nil {
		return exitFault, err
	}
	if text, err := os.ReadFile(filepath.Join(exchange, "code")); err == nil && len(text) > 0 {
		return strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if ctx.Err() != nil {
		return exitFault, errors.New("interrupted")
	}
	if timed.Err() != nil {
		return exitTimeout, fmt.Errorf("the machine was killed after %v\n%s", m.timeout, consoleEnd(exchange))
	}
	if text, err := os.ReadFile(filepath.Join(exchange, "fault")); err == nil {
		return exitFault, errors.New(string(bytes.TrimSpace(text)))
	}
	if why := context.Cause(running); errors.Is(why, errStop) {
		return exitFault, fmt.Errorf("%w\n%s", why, consoleEnd(exchange))
	}
	if _, err := os.Stat(filepath.Join(exchange, "begun")); err != nil || errors.Is(context.Cause(running), errBoot) {
		return exitFault, fmt.Errorf("%w\n%s", errBoot, consoleEnd(exchange))
	}
	return exitFault, fmt.Errorf("the machine ended early\n%s", consoleEnd(exchange))
}

// watch stops a machine whose beat does not begin, and one whose beat ends.
func watch(running context.Context, exchange string, stop context.CancelCauseFunc) {
	booted := time.Now()
	for tick := time.Tick(time.Second); running.Err() == nil; {
		select {
		case <-running.Done():
			return
		case <-tick:
		}
		beat, err := os.Stat(filepath.Join(exchange, "beat"))
		if err == nil && time.Since(beat.ModTime()) > beatTime {
			stop(errStop)
		} else if err != nil && time.Since(booted) > bootTime {
			stop(errBoot)
		}
	}
}

// prepare writes what the machine reads.
func (m *machine) prepare(exchange string, k kernel, args []string) error {
	image, err := initramfs(k)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("NICS=%d\nVIRTIO=%d\nRELEASE=%s\nMODULES=%s\nLOAD=%s\nSHARE=%s\n", m.nics, m.virtio, quote(k.release),
		quote(k.modules()), quote(strings.Join(m.modules, " ")), quote(m.share))
	for name, data := range map[string]string{
		"initramfs": string(image),
		"guest.sh":  guestScript,
		"settings":  settings,
		"command":   m.command(args),
	} {
		if err := os.WriteFile(filepath.Join(exchange, name), []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// passed are the variables that the command sees of this machine's.
var passed = regexp.MustCompile(`^(PATH|HOME|LANG|TMPDIR|GO[A-Z0-9_]*|DAQIRI_[A-Z0-9_]*)=`)

// command is the shell script that the machine runs.
func (m *machine) command(args []string) string {
	var b strings.Builder
	for _, v := range slices.Concat(os.Environ(), m.env) {
		if passed.MatchString(v) {
			name, value, _ := strings.Cut(v, "=")
			fmt.Fprintf(&b, "export %s=%s\n", name, quote(value))
		}
	}
	fmt.Fprintf(&b, "PATH=$PATH:/usr/sbin:/sbin\ncd %s || exit %d\nexec", quote(m.dir), exitFault)
	for _, a := range args {
		b.WriteString(" " + quote(a))
	}
	return b.String() + "\n"
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// bridgeScript becomes the command behind its first argument, in a network namespace that has so many taps on a bridge. It
// ends with the machine.
const bridgeScript = `
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 # nothing but the machine is to use
for f in /proc/sys/net/bridge/*; do [ ! -e $f ] || echo 0 >$f; done # no firewall checks frames, and drops damaged ones
ip link add hub up type bridge mcast_snooping 0
for n in $(seq 0 $(($1 - 1))); do
	ip tuntap add v$n mode tap multi_queue
	ip link set v$n master hub up
done
shift
exec "$@"`

// emulate runs the machine to its end and copies what the command prints.
func (m *machine) emulate(ctx context.Context, exchange string, k kernel) error {
	qemu, err := tool("qemu-system-x86_64")
	if err != nil {
		return err
	}
	args := append([]string{qemu}, m.flags(exchange, k)...)
	if m.queues > 1 {
		args = append([]string{"unshare", "--net", "sh", "-ec", bridgeScript, "sh", strconv.Itoa(m.virtio)}, args...)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	var copies sync.WaitGroup
	var ends []*os.File
	for _, to := range []io.Writer{m.stdout, m.stderr} { // its descriptors 3 and 4
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ends = append(ends, w)
		c.ExtraFiles = append(c.ExtraFiles, w)
		copies.Go(func() {
			_, _ = io.Copy(to, r)
			_ = r.Close()
		})
	}
	err = c.Start()
	for _, w := range ends {
		_ = w.Close()
	}
	if err == nil {
		err = c.Wait()
	}
	copies.Wait()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", qemu, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// flags are qemu's. Emulation works everywhere; a machine that is virtual itself often has no KVM, or a broken one.
// The processor is the oldest that DPDK runs on: wide vector instructions are slow when they are emulated.
func (m *machine) flags(exchange string, k kernel) []string {
	comma := func(path string) string { return strings.ReplaceAll(path, ",", ",,") }
	var list []string
	for n := range m.nics { // first: the others take the slots that are left
		list = append(list, "-netdev", fmt.Sprintf("hubport,id=n%d,hubid=0", n),
			"-device", fmt.Sprintf("e1000,netdev=n%d,addr=%#x", n, firstSlot+n))
	}
	for n := range m.virtio { // the driver has zero-copy where it maps memory for the card, as for any other
		wire, more := fmt.Sprintf("hubport,id=v%d,hubid=1", n), ""
		if m.queues > 1 { // a hub has one only
			wire = fmt.Sprintf("tap,id=v%d,ifname=v%[1]d,script=no,downscript=no,vnet_hdr=off,queues=%d", n, m.queues)
			more = fmt.Sprintf(",mq=on,vectors=%d", 2*m.queues+2)
		}
		list = append(list, "-netdev", wire, "-device", fmt.Sprintf("virtio-net-pci,netdev=v%d,disable-legacy=on,iommu_platform=on%s", n, more))
	}
	list = append(list, "-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2", "-m", strconv.Itoa(m.memory),
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:"+comma(filepath.Join(exchange, "console")),
		"-kernel", k.image, "-initrd", filepath.Join(exchange, "initramfs"),
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off",
		"-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
		"-virtfs", "local,path="+comma(exchange)+",mount_tag=exchange,security_model=none",
		"-device", "virtio-serial",
		"-chardev", "file,id=out,path=/proc/self/fd/3", "-device", "virtserialport,name=out,chardev=out",
		"-chardev", "file,id=err,path=/proc/self/fd/4", "-device", "virtserialport,name=err,chardev=err")
	if m.share != "" {
		list = append(list, "-virtfs", "local,path="+comma(m.share)+",mount_tag=share,security_model=none")
	}
	return list
}

// consoleEnd is the last that the machine reported of itself.
func consoleEnd(exchange string) string {
	text, _ := os.ReadFile(filepath.Join(exchange, "console"))
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}
