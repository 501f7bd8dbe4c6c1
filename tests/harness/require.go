package harness

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/debian"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// clangBPF is the compiler version that made the committed object and the GPU kernels; others make other bytes.
const clangBPF = "14"

// NeedClang14 skips t where there is no clang of the version that made what is committed.
func NeedClang14(t *testing.T) {
	t.Helper()
	Need(t, "bpf")
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(version, []byte(" version "+clangBPF+".")) {
		require.Lack(t, "bpf", "this clang is not version "+clangBPF)
	}
}

// dpdkLibrary reports whether `make build` has left the dpdk engine at the root.
func dpdkLibrary() error {
	if _, err := os.Stat(filepath.Join(tree.Root, "libdaqiri_dpdk.so")); err != nil {
		return errors.New("no libdaqiri_dpdk.so: `make build` makes it where libdpdk is (`make deps` installs it on Debian and Ubuntu)")
	}
	return nil
}

// A probe reports whether this machine has one thing that tests need: nil, or the reason why not.
type probe func() error

// probes is the vocabulary of DAQIRI_REQUIRE, which tests/README.md repeats for people. A test that lacks one of
// these skips and gives the reason; where DAQIRI_REQUIRE (comma separated) names it, the test fails instead.
var probes = map[string]probe{
	"arm64":         crossCompiler,
	"astropy":       pythonModule("astropy"),
	"bpf":           command("clang"), // and llvm-strip: builds the eBPF object
	"capinfos":      command("capinfos"),
	"clang-format":  command("clang-format"),
	"dpdk":          dpdkLibrary,
	"dpdk-releases": func() error { _, err := debian.Mirror(); return err },
	"ethtool":       command("ethtool"),
	"h5dump":        command("h5dump"),
	"h5py":          pythonModule("h5py"),
	"hugepages":     freeHugePages,
	"ip":            command("ip"),
	"iperf3":        command("iperf3"),
	"ipv6":          listens("tcp6", "[::1]:0"),
	"jsonschema":    pythonModule("jsonschema"),
	"libpcap":       libpcap,
	"loopback":      listens("tcp4", "127.0.0.1:0"),
	"loopmount":     loopMount,         // asked for in tests/soak
	"lua5.1":        command("lua5.1"), // asked for in host/script
	"multicast":     multicast,
	"nc":            command("nc"),
	"netns":         namespaces,
	"numpy":         pythonModule("numpy"),
	"nvrtc":         func() error { _, err := debian.Mirror(); return err }, // asked for in runtime/kernel
	"pip":           func() error { _, err := PipPython(); return err },
	"prometheus":    func() error { return errors.Join(command("prometheus")(), command("promtool")()) },
	"pty":           func() error { _, err := os.Stat("/dev/ptmx"); return err }, // asked for in host/repl
	"qemu-user":     command("qemu-aarch64-static", "qemu-aarch64"),
	"rdma":          rdmaLibraries, // asked for in tests/vm, too: soft-RoCE
	"root":          root,
	"s3":            func() error { _, err := versitygw(); return err },
	"sanitizers":    command("gcc"), // TestNative also builds and runs an empty program with each
	"scapy":         pythonModule("scapy"),
	"setarch":       require.FixedAddresses,
	"socat":         command("socat"),
	"staticcheck":   command(os.Getenv("STATICCHECK"), "staticcheck"), // run by tests/suite, which sets STATICCHECK
	"tcpdump":       command("tcpdump"),
	"tcpreplay":     command("tcpreplay"),
	"chromium":      command("chromium"),
	"tshark":        command("tshark"),
	"udp-gro":       udpGRO,                             // asked for in tests/native
	"vale":          command(os.Getenv("VALE"), "vale"), // asked for in tests/language; tests/suite sets VALE
	"xdp":           afXDP,
	"vm":            virtualMachine, // asked for in tests/vm
	"zarrita":       nodePackage("zarrita"),
	"zero-copy":     virtualMachine, // there, too, with a newer kernel
}

// Need skips t, or fails it as DAQIRI_REQUIRE specifies, unless this machine has every named thing.
func Need(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		p, ok := probes[name]
		if !ok {
			t.Fatalf("need %q: not in the table of tests/harness/require.go", name)
		}
		if err := p(); err != nil {
			require.Lack(t, name, err.Error())
		}
		if name == "dpdk" {
			require.HugePages()
		}
	}
}

func command(names ...string) probe {
	return func() error {
		_, err := require.Tool(names...)
		return err
	}
}

var crossCompiler = sync.OnceValue(func() error {
	gcc, err := require.Tool("aarch64-linux-gnu-gcc")
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

// loopMount reports whether a file can be mounted as a file system.
func loopMount() error {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return fmt.Errorf("no loop devices: %w", err)
	}
	return errors.Join(root(), command("mkfs.ext4")())
}

// virtualMachine reports whether the programs are there; tests/vm checks what else may be missing.
func virtualMachine() error {
	return errors.Join(command("qemu-system-x86_64")(), command("busybox")(), command("modprobe")(), command("xz")(), command("cpio")(), command("dpdk-testpmd")())
}

func rdmaLibraries() error {
	_, err := os.Stat("/usr/include/infiniband/verbs.h")
	_, cm := os.Stat("/usr/include/rdma/rdma_cma.h")
	return errors.Join(err, cm, command("rdma")(), command("rping")(), command("ib_send_bw")())
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

// PythonWith is a Python that has modules: the distribution's, even where another one comes first on the PATH.
func PythonWith(modules ...string) (string, error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		check := "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
		if exec.Command(python, append([]string{"-c", check}, modules...)...).Run() == nil {
			return python, nil
		}
	}
	return "", fmt.Errorf("no python3 with %s (`make deps` installs it on Debian and Ubuntu)", strings.Join(modules, ", "))
}

func pythonModule(module string) probe {
	return sync.OnceValue(func() error { _, err := PythonWith(module); return err })
}

// NodePackages is the folder whose programs Node.js runs with the packages of tests/tools/node.
var NodePackages = filepath.Join(tree.Root, "tests/tools/node")

func nodePackage(name string) probe {
	return func() error {
		if _, err := require.Tool("node"); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(NodePackages, "node_modules", name)); err != nil {
			return fmt.Errorf("no %s in tests/tools/node (`make deps` installs it)", name)
		}
		return nil
	}
}

// ScapyPython is a Python that has scapy.
var ScapyPython = sync.OnceValues(func() (string, error) { return PythonWith("scapy") })

// PipPython is a Python that installs packages without a network: what builds the reader is there, and what it needs.
var PipPython = sync.OnceValues(func() (string, error) { return PythonWith("pip", "ensurepip", "setuptools", "wheel", "numpy") })

// listens: an address of this machine can be bound.
func listens(network, address string) probe {
	return func() error {
		l, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		return l.Close()
	}
}

// multicast: the loopback interface can be a member of a group.
func multicast() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	c, err := net.ListenMulticastUDP("udp4", lo, &net.UDPAddr{IP: net.IPv4(239, 77, 1, 9)})
	if err != nil {
		return err
	}
	return c.Close()
}

// udpGRO: the kernel joins datagrams.
func udpGRO() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	const optGRO = 104 // UDP_GRO
	return syscall.SetsockoptInt(fd, syscall.IPPROTO_UDP, optGRO, 1)
}

// afXDP: the kernel has AF_XDP sockets, which need root.
func afXDP() error {
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err == nil && !bytes.Contains(symbols, []byte(" xsk_bind\n")) {
		err = errors.New("this kernel has no AF_XDP")
	}
	return errors.Join(root(), err)
}

// versitygw is an S3 server that keeps objects as files; `make test` builds it.
func versitygw() (string, error) { return require.Tool(os.Getenv("VERSITYGW"), "versitygw") }
