package tests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A probe tells whether this machine has one thing that tests need: nil, or the reason why not.
type probe func() error

// probes is the vocabulary of DAQIRI_REQUIRE, which tests/README.md repeats for people. A test that lacks one of
// these skips and says why; where DAQIRI_REQUIRE (comma separated) names it, the test fails instead.
var probes = map[string]probe{
	"arm64":         crossCompiler,
	"bpf":           command("clang"), // and llvm-strip: builds the eBPF object
	"capinfos":      command("capinfos"),
	"clang-format":  command("clang-format"),
	"dpdk":          dpdkLibrary,
	"dpdk-releases": func() error { _, err := debianMirror(); return err },
	"ethtool":       command("ethtool"),
	"hugepages":     freeHugePages,
	"ip":            command("ip"),
	"iperf3":        command("iperf3"),
	"libpcap":       libpcap,
	"loopmount":     loopMount,         // asked for in tests/soak
	"lua5.1":        command("lua5.1"), // asked for in host/script
	"nc":            command("nc"),
	"netns":         namespaces,
	"prometheus":    func() error { return errors.Join(command("prometheus")(), command("promtool")()) },
	"qemu-user":     command("qemu-aarch64-static", "qemu-aarch64"),
	"root":          root,
	"s3":            func() error { _, err := versitygw(); return err },
	"sanitizers":    command("gcc"), // TestNative also builds and runs an empty program with each
	"scapy":         scapy,
	"setarch":       fixedAddresses,
	"socat":         command("socat"),
	"staticcheck":   command(os.Getenv("STATICCHECK"), "staticcheck"), // run by the Makefile, which sets STATICCHECK
	"tcpdump":       command("tcpdump"),
	"tcpreplay":     command("tcpreplay"),
	"tshark":        command("tshark"),
	"xdp":           afXDP,
	"vm":            virtualMachine, // asked for in tests/vm
	"zero-copy":     virtualMachine, // there, too, with a newer kernel
}

// need skips t, or fails it as DAQIRI_REQUIRE says, unless this machine has every named thing.
func need(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		p, ok := probes[name]
		if !ok {
			t.Fatalf("need %q: not in the table of tests/require_test.go", name)
		}
		if err := p(); err != nil {
			lack(t, name, err.Error())
		}
	}
}

// lack ends t because the named thing is missing or does not work: with a skip, or with a failure where
// DAQIRI_REQUIRE names it.
func lack(t testing.TB, name, reason string) {
	t.Helper()
	if slices.Contains(required(), name) {
		t.Fatalf("%s: %s (DAQIRI_REQUIRE names it)", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}

func required() []string {
	return strings.FieldsFunc(os.Getenv("DAQIRI_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
}

func TestRequire(t *testing.T) {
	vocabulary := readFile(t, "tests/README.md")
	for name := range probes {
		if !strings.Contains(vocabulary, "`"+name+"`") {
			t.Errorf("tests/README.md does not name %s", name)
		}
	}
	for _, name := range required() {
		t.Run(name, func(t *testing.T) {
			p, ok := probes[name]
			if !ok {
				t.Fatal("DAQIRI_REQUIRE names something that no test probes for: see tests/README.md")
			}
			if err := p(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tool is the path of the first of the named commands that is there. The folders of system commands are searched
// even where an ordinary user's PATH leaves them out.
func tool(names ...string) (string, error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
		for _, dir := range []string{"/usr/sbin", "/sbin"} {
			if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed (`make deps` installs it on Debian and Ubuntu)", names[len(names)-1])
}

func command(names ...string) probe {
	return func() error {
		_, err := tool(names...)
		return err
	}
}

var crossCompiler = sync.OnceValue(func() error {
	gcc, err := tool("aarch64-linux-gnu-gcc")
	if err != nil {
		return err
	}
	check := exec.Command(gcc, "-fsyntax-only", "-include", "stdio.h", "-x", "c", os.DevNull)
	if out, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("%s has no C library: %s (%w)", gcc, bytes.TrimSpace(out), err)
	}
	return nil
})

func root() error {
	if os.Getuid() != 0 {
		return errors.New("needs root")
	}
	return nil
}

var namespaces = sync.OnceValue(func() error {
	if err := root(); err != nil {
		return err
	}
	if out, err := exec.Command("unshare", "--net", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make a network namespace: %s (%w)", bytes.TrimSpace(out), err)
	}
	return nil
})

var fixedAddresses = sync.OnceValue(func() error {
	if out, err := exec.Command("setarch", "--addr-no-randomize", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot turn address randomization off: %s (%w)", bytes.TrimSpace(out), err)
	}
	return nil
})

// loopMount tells whether a file can be mounted as a file system.
func loopMount() error {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return fmt.Errorf("no loop devices: %w", err)
	}
	return errors.Join(root(), command("mkfs.ext4")())
}

// virtualMachine tells whether the programs are there; tests/vm says what else may be missing.
func virtualMachine() error {
	return errors.Join(command("qemu-system-x86_64")(), command("busybox")(), command("modprobe")(), command("xz")(), command("cpio")(), command("dpdk-testpmd")())
}

func freeHugePages() error {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "HugePages_Free:" {
			continue
		}
		if n, _ := strconv.Atoi(f[1]); n > 0 {
			return nil
		}
	}
	return errors.New("no free huge page (hint: echo 64 > /proc/sys/vm/nr_hugepages, as root)")
}

func libpcap() error {
	for _, pattern := range []string{"/usr/lib/*/libpcap.so.*", "/usr/lib*/libpcap.so.*", "/lib/*/libpcap.so.*"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return nil
		}
	}
	return errors.New("libpcap.so is not installed (`make deps` installs it on Debian and Ubuntu)")
}

// scapyPython is a Python that has scapy: the distribution's, even where another one comes first on the PATH.
var scapyPython = sync.OnceValues(func() (string, error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		check := "import importlib.util, sys; sys.exit(importlib.util.find_spec('scapy') is None)"
		if exec.Command(python, "-c", check).Run() == nil {
			return python, nil
		}
	}
	return "", errors.New("no python3 with scapy (`make deps` installs it on Debian and Ubuntu)")
})

func scapy() error {
	_, err := scapyPython()
	return err
}

// afXDP: the kernel has AF_XDP sockets, which need root.
func afXDP() error {
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err == nil && !bytes.Contains(symbols, []byte(" xsk_bind\n")) {
		err = errors.New("this kernel has no AF_XDP")
	}
	return errors.Join(root(), err)
}
