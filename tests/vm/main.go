// Command vm runs a command in a small virtual machine that sees this machine's files: for PCI network cards, kernel
// modules and clocks that this machine does not have or must not touch. The machine is emulated, so it needs no right
// and no hardware; README.md has the how and the figures. The exit code is the command's, or one of those below.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes of its own, as timeout(1) has them.
const (
	exitTimeout = 124
	exitFault   = 125 // the machine could not be made, or broke
	exitUsage   = 2
)

func main() {
	m := machine{stdout: os.Stdout, stderr: os.Stderr}
	var modules, cache, pkg, suite string
	flag.IntVar(&m.nics, "nics", 0, "so many e1000 cards on one hub, at PCI addresses 0000:00:05.0 and up, bound to uio_pci_generic")
	flag.IntVar(&m.virtio, "virtio", 0, "so many virtio-net cards on another hub, with Linux interfaces eth0 and up")
	flag.IntVar(&m.queues, "queues", 1, "of each virtio-net card, each way; several need root")
	flag.StringVar(&suite, "suite", "", "take the kernel of this suite of Debian's archive, "+newer+" for one")
	flag.StringVar(&modules, "modules", "", "kernel modules to load that nothing loads by itself, comma separated")
	flag.IntVar(&m.memory, "memory", 1024, "MB")
	flag.DurationVar(&m.timeout, "timeout", 2*time.Minute, "kill the machine then")
	flag.StringVar(&m.share, "share", "", "existing folder where what the command writes stays; elsewhere it is gone with the machine")
	flag.StringVar(&pkg, "test", "", "Go package: builds its tests here and runs them there; the command is their arguments")
	flag.StringVar(&cache, "cache", "build/vm", "where the kernel is kept")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: tests/vm/run [FLAGS] -- COMMAND [ARGS]\n       tests/vm/run [FLAGS] -test PACKAGE [-- -test.run X]\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	m.modules = strings.FieldsFunc(modules, func(r rune) bool { return r == ',' || r == ' ' })
	if flag.NArg() == 0 && pkg == "" {
		flag.Usage()
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := start(ctx, &m, cache, suite, pkg, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "vm: %v\n", err)
	}
	os.Exit(code)
}

// start runs the command, or the tests of pkg with these arguments, and returns the exit code.
func start(ctx context.Context, m *machine, cache, suite, pkg string, args []string) (int, error) {
	k, err := getKernel(cache, suite)
	if err != nil {
		return exitFault, err
	}
	if m.dir, err = os.Getwd(); err != nil {
		return exitFault, err
	}
	if m.share != "" {
		if m.share, err = filepath.Abs(m.share); err != nil {
			return exitFault, err
		}
	}
	if pkg != "" {
		return m.test(ctx, k, cache, pkg, args)
	}
	return m.run(ctx, k, args)
}

// test builds the tests of pkg and runs them in its folder.
func (m *machine) test(ctx context.Context, k kernel, cache, pkg string, args []string) (int, error) {
	dir, err := os.MkdirTemp(cache, "test-")
	if err != nil {
		return exitFault, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := filepath.Abs(filepath.Join(dir, "go.test"))
	if err != nil {
		return exitFault, err
	}
	if m.dir, err = buildTest(ctx, pkg, program); err != nil {
		return exitFault, err
	}
	return m.run(ctx, k, append([]string{program}, args...))
}

// buildTest compiles the tests of a package and returns its folder, in which they expect to run.
func buildTest(ctx context.Context, pkg, program string) (dir string, err error) {
	args := slices.Concat([]string{"test", "-c", "-o", program}, sanitized(), []string{pkg})
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c %s: %w\n%s", pkg, err, out)
	}
	if _, err := os.Stat(program); err != nil {
		return "", errors.New(pkg + " has no tests")
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	return strings.TrimSpace(string(out)), err
}

// sanitized are go's flags for what runs in the machine: with DAQIRI_VM_ASAN the address sanitizer checks the engine.
func sanitized() []string {
	if os.Getenv("DAQIRI_VM_ASAN") == "" {
		return nil
	}
	return []string{"-asan"}
}
