// Package require reads DAQIRI_REQUIRE for all Go tests: a comma-separated list of what this machine should have. A
// test that lacks one of these things skips, and fails where the list names it.
//
// It may import the standard library, and only tests import it.
package require

import (
	"os"
	"slices"
	"strings"
)

// Names is the vocabulary, which tests/README.md explains.
var Names = []string{"arm64", "astropy", "bpf", "capinfos", "chromium", "clang-format", "dpdk", "dpdk-releases", "ethtool", "h5dump", "h5py", "hugepages", "ip", "iperf3",
	"ipv6", "jsonschema", "libpcap", "loopback", "loopmount", "lua5.1", "multicast", "nc", "netns", "numpy", "nvrtc", "pip", "prometheus", "pty", "qemu-user", "rdma", "root",
	"s3", "sanitizers", "scapy", "setarch", "socat", "staticcheck", "tcpdump", "tcpreplay", "tshark", "udp-gro", "vale", "vm", "xdp", "zarrita", "zero-copy"}

// Test is what a test, a benchmark or a fuzz target can do.
type Test interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// List is what DAQIRI_REQUIRE names.
func List() []string {
	return strings.FieldsFunc(os.Getenv("DAQIRI_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
}

// Named reports whether DAQIRI_REQUIRE names the thing.
func Named(name string) bool { return slices.Contains(List(), name) }

// Lack ends t because the named thing is missing or does not work: with a skip, or with a failure where DAQIRI_REQUIRE
// names it. A name outside the vocabulary, which nothing could require, fails.
func Lack(t Test, name, reason string) {
	t.Helper()
	if !slices.Contains(Names, name) {
		t.Fatalf("%s: %s (and tests/require does not list %s)", name, reason, name)
	}
	if Named(name) {
		t.Fatalf("%s: %s (DAQIRI_REQUIRE names it)", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}
