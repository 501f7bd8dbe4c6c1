package network

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/debian"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// dpdkDrivers are the packages of a release's libraries, without the number of their ABI.
const dpdkDrivers = "^librte-(net-null|net-ring|net-pcap|mempool-ring|bus-vdev|bus-pci)[0-9]"

// TestDPDKReleases builds the library against the DPDK of later Debian releases, and runs it with their libraries, the C
// library included: packets go round a ring, and into a capture and out of it again.
func TestDPDKReleases(t *testing.T) {
	harness.Need(t, "dpdk", "dpdk-releases")
	program := harness.Built(t)
	for _, suite := range []string{"trixie", "forky"} { // 24.11, 25.11
		t.Run(suite, func(t *testing.T) {
			t.Parallel() // one waits for the mirror while another compiles
			root, err := dpdkRelease(suite)
			if err != nil {
				require.Lack(t, "dpdk-releases", err.Error())
			}
			lib := root.build(t)
			capture := "vdev:net_pcap0,tx_pcap=" + filepath.Join(t.TempDir(), "sent.pcap")
			for _, c := range []struct {
				device, count, seconds string
				want                   int
			}{
				{"vdev:net_ring0", "500", "30", 500},
				{capture, "500", "1", 0},
				{strings.Replace(capture, "tx_pcap", "rx_pcap", 1) + ",tx_pcap=/dev/null", "0", "30", 500},
			} {
				got, output := root.run(t, lib, program, "--device", c.device, "--count", c.count, "--seconds", c.seconds, "--want", fmt.Sprint(c.want))
				if got != c.want || !strings.Contains(output, "of DPDK "+root.version) {
					t.Errorf("%s: %d packets of flow 5, want %d, with DPDK %s\n%s", c.device, got, c.want, root.version, output)
				}
			}
		})
	}
}

// A debianRoot is what packages of another Debian release hold, unpacked.
type debianRoot struct {
	dir, libs string
	version   string // of DPDK: "24.11.4"
}

// dpdkRelease finds DPDK of a release in build/, or downloads it from the mirror that this machine uses.
func dpdkRelease(suite string) (debianRoot, error) {
	to, err := debian.Root("dpdk-"+suite, suite, "main", `drivers=$(apt-cache search --names-only "$1" | cut -d ' ' -f 1)
[ -n "$drivers" ]
needed=$(apt-get -q -y --no-install-recommends --simulate install $drivers | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
apt-get -q download libdpdk-dev $needed`, dpdkDrivers)
	if err != nil {
		return debianRoot{}, err
	}
	pc, _ := filepath.Glob(filepath.Join(to, "usr/lib/*/pkgconfig/libdpdk.pc"))
	if len(pc) != 1 {
		return debianRoot{}, fmt.Errorf("%s has %d files libdpdk.pc; hint: remove it", to, len(pc))
	}
	text, err := os.ReadFile(pc[0])
	if err != nil {
		return debianRoot{}, err
	}
	version := regexp.MustCompile(`(?m)^Version: (\S+)$`).FindSubmatch(text)
	if version == nil {
		return debianRoot{}, fmt.Errorf("%s names no version", pc[0])
	}
	return debianRoot{to, filepath.Dir(filepath.Dir(pc[0])), string(version[1])}, nil
}

// build makes the library against the release, its drivers linked to it since they are not where DPDK looks for them.
func (r debianRoot) build(t *testing.T) string {
	t.Helper()
	flags := exec.Command("pkg-config", "--define-variable=prefix="+filepath.Join(r.dir, "usr"), "--cflags", "libdpdk-libs")
	flags.Env = append(os.Environ(), "PKG_CONFIG_LIBDIR="+filepath.Join(r.libs, "pkgconfig"))
	include, err := flags.Output()
	if err != nil {
		t.Fatalf("pkg-config: %v", err)
	}
	lib := filepath.Join(t.TempDir(), "libdaqiri_dpdk.so")
	build := exec.Command("make", "--no-print-directory", lib, "DPDK_LIB="+lib,
		"DPDK_INCLUDE="+strings.ReplaceAll(strings.TrimSpace(string(include)), "-I", "-isystem "),
		"DPDK_LINK=-L"+r.libs+" -Wl,--as-needed -lrte_ethdev -lrte_mbuf -lrte_mempool -lrte_eal"+
			" -Wl,--no-as-needed -lrte_net_null -lrte_net_ring -lrte_net_pcap -lrte_mempool_ring -lrte_bus_vdev -lrte_bus_pci")
	build.Dir = tree.Root
	out, err := build.CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning") {
		t.Fatalf("%v\n%s", err, out)
	}
	return lib
}

// run runs the script as dpdkRun does, on the release's libraries: how many packets were of flow 5, and the summary.
func (r debianRoot) run(t *testing.T, lib, program string, args ...string) (marked int, output string) {
	t.Helper()
	loaders, _ := filepath.Glob(filepath.Join(r.libs, "ld-linux-*.so.*"))
	if len(loaders) != 1 {
		t.Fatalf("%s has %d dynamic linkers", r.libs, len(loaders))
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "dpdk.lua")
	if err := os.WriteFile(script, []byte(dpdkScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(loaders[0], append([]string{"--library-path", r.libs, program, "--summary", "full", script, "--dir", dir}, args...)...)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || !strings.Contains(stderr.String(), "every packet is accounted for") {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var got struct{ Marked int }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return got.Marked, stderr.String()
}
