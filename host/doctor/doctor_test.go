package doctor

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// lay writes the files of a simulated machine; content "to:..." creates a link.
func lay(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(path)
		var err error
		if to, link := strings.CutPrefix(text, "to:"); link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// express returns a PCI configuration space with a PCI Express capability at 0x60, after one for power management.
func express(payload, most, request int) string {
	b := make([]byte, 256)
	code := map[int]uint16{128: 0, 256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
	b[0x34] = 0x40
	b[0x40], b[0x41] = 1, 0x60
	b[0x60] = 0x10
	b[0x64] = byte(code[most])
	binary.LittleEndian.PutUint16(b[0x68:], code[payload]<<5|code[request]<<12)
	return string(b)
}

const (
	cpu  = "sys/devices/system/cpu/"
	node = "sys/devices/system/node/"
	nic  = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/"
	gpu  = "sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/"
)

// good returns a well-configured machine: two nodes, a network card with a link, and a GPU on the same bus.
func good() map[string]string {
	files := map[string]string{
		"proc/cmdline":     "quiet isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 iommu=pt\n",
		"proc/self/status": "Name:\tx\nCapEff:\t000001ffffffffff\n", "proc/self/cgroup": "0::/user\n",
		"sys/fs/cgroup/user/cpu.max": "max 100000\n", "sys/fs/cgroup/user/memory.max": "max\n", "proc/meminfo": "MemAvailable:   8000000 kB\n",
		cpu + "online": "0-3\n", cpu + "isolated": "2-3\n",
		node + "online": "0-1\n", node + "node0/cpulist": "0,2\n", node + "node1/cpulist": "1,3\n",
		node + "node0/hugepages/hugepages-2048kB/nr_hugepages": "512\n", node + "node0/hugepages/hugepages-2048kB/free_hugepages": "512\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet\n",
		"sys/class/iommu/dmar0/x": "", "sys/module/nvidia_peermem/refcnt": "0\n",
		"proc/net/route":                         "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\nens1\t000000E0\t0\t1\t0\t0\t0\t000000F0\t0\n",
		"proc/sys/net/ipv4/igmp_max_memberships": "1024\n", "proc/sys/net/core/rmem_max": "67108864\n",
		"proc/sys/net/ipv4/conf/all/rp_filter": "0\n", "proc/sys/net/ipv4/conf/ens1/rp_filter": "2\n",
		nic + "class": "0x020000\n", nic + "vendor": "0x15b3\n", nic + "numa_node": "0\n", nic + "current_link_speed": "16.0 GT/s PCIe\n",
		nic + "max_link_speed": "16.0 GT/s PCIe\n", nic + "current_link_width": "16\n", nic + "max_link_width": "16\n", nic + "driver": "to:/drivers/mlx5_core",
		nic + "config": express(512, 512, 4096), nic + "ptp/ptp0/clock_name": "mlx5\n",
		gpu + "class": "0x030200\n", gpu + "vendor": "0x10de\n", gpu + "numa_node": "0\n", gpu + "driver": "to:/drivers/nvidia",
		gpu + "resource":                   "0xd0000000 0xd0ffffff 0x0\n0x200000000 0x3ffffffff 0x0\n",
		"sys/bus/pci/devices/0000:01:00.0": "to:../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0",
		"sys/bus/pci/devices/0000:02:00.0": "to:../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0",
		"sys/class/net/ens1/ifindex":       "2\n", "sys/class/net/ens1/operstate": "up\n", "sys/class/net/ens1/mtu": "9000\n", "sys/class/net/ens1/speed": "100000\n",
		"sys/class/net/ens1/device":                 "to:../../../bus/pci/devices/0000:01:00.0",
		"sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
	}
	for n := range 4 {
		files[fmt.Sprintf("%scpu%d/cpufreq/scaling_governor", cpu, n)] = "performance\n"
		files[fmt.Sprintf("%scpu%d/node%d/x", cpu, n, n%2)] = ""
	}
	return files
}

const config = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    memory_regions:
    - {name: packets, kind: huge, affinity: 0, num_bufs: 1024, buf_size: 9100}
    interfaces:
    - name: a
      address: ens1
      rx:
        queues:
        - {name: rx, id: 0, cpu_core: 2, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
`

// ofMachine reports whether a row reads only files. The other rows query the kernel and are tested in a network namespace (tests/network/doctor_test.go).
func ofMachine(f Finding) bool {
	return !slices.Contains([]string{"features", "joined packets", "time", "files", "open files", "locked memory"}, f.Row)
}

// TestRows checks that nothing fails on a well-configured machine, and that each defect is found only by the rows for it, with a command that
// fixes it.
func TestRows(t *testing.T) {
	for _, c := range []struct {
		name, row, found string
		files            map[string]string // "gone": the file is removed
		alone            bool              // without a configuration
		also             []string          // further rows that find it
	}{
		{name: "well"},
		{name: "well, without a configuration", alone: true},
		{name: "governor", row: "governor", found: "powersave on 1 of 4 cores", files: map[string]string{cpu + "cpu2/cpufreq/scaling_governor": "powersave\n"}},
		{name: "no isolated core", row: "isolated cores", found: "queues poll on cores 2, where other programs run", files: map[string]string{cpu + "isolated": "\n"}},
		{name: "ticks", row: "kernel timers", found: "not for cores 3, which are isolated", files: map[string]string{"proc/cmdline": "isolcpus=2-3 nohz_full=2 rcu_nocbs=2-3 irqaffinity=0-1 iommu=pt"}},
		{name: "interrupts", row: "kernel timers", found: "interrupts go to isolated cores, too", files: map[string]string{"proc/cmdline": "nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-2 iommu=pt"}},
		{name: "core that is off", row: "cores", found: "core 2 is not one that this process may use (0-1,3)", files: map[string]string{cpu + "online": "0-1,3\n"}},
		{name: "cpuset", row: "cores", found: "core 2 is not one", files: map[string]string{"sys/fs/cgroup/user/cpuset.cpus.effective": "0-1\n"}},
		{name: "slow clock", row: "clock source", found: "hpet", files: map[string]string{"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}},
		{name: "quota", row: "control group", found: "50000 100000 us", files: map[string]string{"sys/fs/cgroup/user/cpu.max": "50000 100000\n"}},
		{name: "little memory", row: "memory", found: "is available", files: map[string]string{"proc/meminfo": "MemAvailable: 4000 kB\n"}},
		{name: "group's memory", row: "memory", found: "the group may have 1 MiB", files: map[string]string{"sys/fs/cgroup/user/memory.max": "1048576\n"}},
		{name: "few huge pages", row: "huge pages", found: "node 0: 512 of 2 MiB, 2 free; regions need", files: map[string]string{node + "node0/hugepages/hugepages-2048kB/free_hugepages": "2\n"}},
		{name: "no huge pages", alone: true, row: "huge pages", found: "none are set aside", files: map[string]string{node + "node0/hugepages/hugepages-2048kB/nr_hugepages": "0\n"}},
		{name: "link down", row: "link", found: "ens1: is down", files: map[string]string{"sys/class/net/ens1/operstate": "down\n"}},
		{name: "MTU above buffers", row: "MTU", found: "frames have up to 9514 bytes, its buffers 9100", files: map[string]string{"sys/class/net/ens1/mtu": "9500\n"}},
		{name: "small MTU", alone: true, row: "MTU", found: "1500", files: map[string]string{"sys/class/net/ens1/mtu": "1500\n"}},
		{name: "few groups", alone: true, row: "group limit", found: "is 20", files: map[string]string{"proc/sys/net/ipv4/igmp_max_memberships": "20\n"}},
		{name: "strict filter", alone: true, row: "reverse path", found: "ens1: strict", files: map[string]string{"proc/sys/net/ipv4/conf/ens1/rp_filter": "1\n"}},
		{name: "no route to groups", alone: true, row: "multicast route", found: "no route", files: map[string]string{"proc/net/route": "Iface\nens1\t0000000A\t0\t1\t0\t0\t0\t000000FF\t0\n"}},
		{name: "small kernel buffers", alone: true, row: "socket buffers", found: "net.core.rmem_max is 208 KiB",
			files: map[string]string{"proc/sys/net/core/rmem_max": "212992\n", "proc/self/status": "CapEff:\t0\n"}, also: []string{"rights"}},
		{name: "no right", row: "rights", found: "cap_net_raw: missing, for raw frames", files: map[string]string{"proc/self/status": "CapEff:\t000001ffffffdfff\n"}},
		{name: "interface that is not there", row: "addresses", found: "there is no interface ens1", files: map[string]string{"sys/class/net/ens1/ifindex": "gone"}},
		{name: "narrow link", row: "PCIe link", found: "16.0 GT/s PCIe x8 of 16.0 GT/s PCIe x16", files: map[string]string{nic + "current_link_width": "8\n"}},
		{name: "slow link", row: "PCIe link", found: "8.0 GT/s PCIe x16", files: map[string]string{nic + "current_link_speed": "8.0 GT/s PCIe\n"}},
		{name: "short reads", row: "PCIe read request", found: "512 bytes", files: map[string]string{nic + "config": express(512, 512, 512)}},
		{name: "small payload", row: "PCIe payload", found: "128 bytes, the card could have 512", files: map[string]string{nic + "config": express(128, 512, 4096)}},
		{name: "translated", row: "IOMMU", found: "on, and translates", files: map[string]string{"proc/cmdline": "nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1"}},
		{name: "far core", row: "NUMA", found: "core 2 is on node 0, the card on node 1", files: map[string]string{nic + "numa_node": "1\n"}},
		{name: "silent RDMA", alone: true, row: "RDMA", found: "mlx5_0: port is 1: DOWN", files: map[string]string{"sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n"}},
		{name: "GPU without driver", row: "GPU", found: "its driver is nouveau", files: map[string]string{gpu + "driver": "to:/drivers/nouveau"}},
		{name: "no peer memory", row: "GPU peer memory", found: "is not loaded", files: map[string]string{"sys/module/nvidia_peermem": "gone"}},
		{name: "small window", row: "GPU window", found: "256 MiB", files: map[string]string{gpu + "resource": "0x0 0x0 0x0\n0x10000000 0x1fffffff 0x0\n"}},
		{name: "far GPU", row: "GPU and card", found: "the nearest card is 0000:01:00.0: PHB", files: map[string]string{
			"sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0/class": "0x030200\n", "sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0/vendor": "0x10de\n",
			"sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0/driver": "to:/drivers/nvidia",
			"sys/bus/pci/devices/0000:03:00.0":                        "to:../../../devices/pci0000:00/0000:00:02.0/0000:03:00.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			lay(t, root, good())
			for name, text := range c.files {
				if text == "gone" {
					if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				lay(t, root, map[string]string{name: text})
			}
			o := Options{Machine: machine.At(root)}
			if !c.alone {
				cfg, _, err := spec.ParseText("x.yaml", config, spec.Options{})
				if err != nil {
					t.Fatal(err)
				}
				o.Config = cfg
			}
			seen := false
			for _, f := range Examine(o) {
				text := f.Found
				if f.Of != "" {
					text = f.Of + ": " + text
				}
				switch {
				case f.State != Fail || !ofMachine(f):
				case f.Row == c.row && strings.Contains(text, c.found):
					seen = true
					if f.Command == "" || f.Why == "" {
						t.Errorf("%+v lacks a command or why", f)
					}
				case f.Row != c.row && !slices.Contains(c.also, f.Row):
					t.Errorf("%s fails, too: %s", f.Row, text)
				}
			}
			if c.row != "" && !seen {
				t.Errorf("row %s has not found %q", c.row, c.found)
			}
		})
	}
}

// TestDistance checks the connection between two devices, in the terms of nvidia-smi topo -m.
func TestDistance(t *testing.T) {
	root := t.TempDir()
	place := func(address, path, node string) {
		lay(t, root, map[string]string{"sys/devices/" + path + "/class": "0x020000\n", "sys/devices/" + path + "/numa_node": node,
			"sys/bus/pci/devices/" + address: "to:../../../devices/" + path})
	}
	place("0000:03:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", "0")
	place("0000:04:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0", "0") // another port of the same switch
	place("0000:05:00.0", "pci0000:00/0000:00:02.0/0000:05:00.0", "0")                           // another root port
	place("0000:81:00.0", "pci0000:80/0000:80:01.0/0000:81:00.0", "0")                           // another host bridge
	place("0000:c1:00.0", "pci0000:c0/0000:c0:01.0/0000:c1:00.0", "1")                           // another node
	m := machine.At(root)
	for other, want := range map[string]string{"0000:04:00.0": "PIX", "0000:05:00.0": "PHB", "0000:81:00.0": "NODE", "0000:c1:00.0": "SYS"} {
		if got := m.PCI("0000:03:00.0").Distance(m.PCI(other)); got != want {
			t.Errorf("%s: %s, want %s", other, got, want)
		}
	}
}

// TestGroups checks that multicast rows only apply to configurations with a group.
func TestGroups(t *testing.T) {
	root := t.TempDir()
	lay(t, root, good())
	lay(t, root, map[string]string{"proc/sys/net/ipv4/igmp_max_memberships": "20\n", "proc/net/route": "Iface\n"})
	for local, fails := range map[string]bool{"127.0.0.1": false, "239.1.2.3": true} {
		cfg, _, err := spec.ParseText("x.yaml", strings.ReplaceAll(`daqiri:
  cfg:
    version: 1
    stream_type: socket
    master_core: 0
    memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]
    interfaces:
    - name: in
      address: 127.0.0.1
      socket_config: {mode: server, local_addr: "udp://LOCAL:7148"}
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 8, memory_regions: [m]}]}
`, "LOCAL", local), spec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		failed := map[string]bool{}
		for _, f := range Examine(Options{Machine: machine.At(root), Config: cfg}) {
			failed[f.Row] = failed[f.Row] || f.State == Fail
		}
		for _, row := range []string{"group limit", "multicast route"} {
			if failed[row] != fails {
				t.Errorf("%s: row %s fails: %v, want %v", local, row, failed[row], fails)
			}
		}
	}
}
