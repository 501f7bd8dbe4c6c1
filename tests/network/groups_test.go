package network

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// joinScript joins three groups and leaves two of them once there is a file named leave; it ends with a file named end.
const joinScript = `
local daqiri = require "daqiri"
local s = daqiri.open("raw.yaml")
local i, left = s:interface("rx_port"), false
local function ok(n, code, why) if not n then error(code .. ": " .. why, 2) end return n end
s:rx_queue("rx_port"):on_burst(function() end)
local function exists(name)
  local f = io.open(name)
  if f then f:close() end
  return f ~= nil
end
s:after(0, function()
  ok(i:join_multicast{ groups = "239.9.1.1" })
  ok(i:join_multicast{ groups = "239.9.1.1" })
  ok(i:join_multicast{ groups = "232.9.1.2", source = "10.98.0.1" })
  ok(i:join_multicast{ groups = "ff15::9:1" })
  local n, code, why = i:join_multicast{ groups = "232.9.1.2" }
  print("clash", n, code, why)
  n, code, why = i:leave_multicast{ groups = "239.9.1.7" }
  print("stranger", n, code, why)
  print("joined")
end)
s:every(0.02, function()
  if not left and exists("leave") then
    left = true
    ok(i:leave_multicast{ groups = "239.9.1.1" })
    ok(i:leave_multicast{ groups = "ff15::9:1" })
    print("left")
  end
  if exists("end") then s:stop("enough") end
end)
s:run{ seconds = 120 }
`

// snooping makes the sending end a bridge that asks for members and notes who answers, with these versions of IGMP and MLD.
func (c *cable) snooping(igmp, mld string) {
	c.T.Helper()
	c.In(c.Send, "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "1", "mcast_igmp_version", igmp, "mcast_mld_version", mld,
		"mcast_querier", "1", "mcast_query_interval", "200", "mcast_query_response_interval", "100", "mcast_last_member_interval", "20",
		"mcast_membership_interval", "600")
	c.In(c.Send, "ip", "addr", "add", "10.98.0.9/24", "dev", "br0")
	c.In(c.Send, "ip", "link", "set", "veth0", "master", "br0")
	c.In(c.Send, "ip", "link", "set", "br0", "up")
}

// members lists the groups that the bridge at the sending end has members of behind the cable.
func (c *cable) members() string {
	c.T.Helper()
	return c.In(c.Send, "bridge", "-d", "mdb", "show", "dev", "br0")
}

func (r *rawRun) file(name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

var memberLine = regexp.MustCompile(`(?m)^.*port veth0 grp (\S+)( src (\S+))?.*$`)

// isMember reports whether the bridge has the group, with this source where it notes one ("": of any).
func (c *cable) isMember(group, source string) bool {
	for _, m := range memberLine.FindAllStringSubmatch(c.members(), -1) {
		if m[1] == group && (source == "" || m[3] == source) {
			return true
		}
	}
	return false
}

// memberships has the script join groups, and leave them again; a bridge of the kernel's at the other end notes it.
func (c *cable) memberships(program, igmp, mld string) {
	c.T.Helper()
	c.snooping(igmp, mld)
	r := c.raw(program, joinScript, rawSender)
	r.wait("\njoined\n") // the line: the word is in an error, too
	for _, want := range []string{"clash\tnil\tGENERIC_FAILURE", "leave it first", "stranger\tnil\tGENERIC_FAILURE", "it was not joined"} {
		if !strings.Contains(r.out.String(), want) {
			c.T.Errorf("the script does not print %q:\n%s", want, r.out.String())
		}
	}
	source := harness.SendAddr
	if igmp == "2" {
		source = "" // it knows none
	}
	r.until("member of all groups", func() bool {
		return c.isMember("239.9.1.1", "") && c.isMember("232.9.1.2", source) && c.isMember("ff15::9:1", "")
	})
	r.file("leave")
	r.wait("left\n")
	r.until("end of two memberships", func() bool { return !c.isMember("239.9.1.1", "") && !c.isMember("ff15::9:1", "") })
	if !c.isMember("232.9.1.2", source) {
		c.T.Errorf("the third group was left, too:\n%s", c.members())
	}
	r.file("end")
	r.end(0)
	harness.Until(c.T, "end of the last membership", func() bool { return !c.isMember("232.9.1.2", "") })
}

// TestRawMembership joins and leaves on a Linux interface: the kernel reports.
func TestRawMembership(t *testing.T) {
	newCable(t).memberships(harness.Built(t), "3", "2")
}

// dpdk has raw interfaces go through DPDK, which sees the cable as a device: no kernel reports or answers for it.
func (c *cable) dpdk() {
	c.T.Helper()
	harness.Need(c.T, "dpdk")
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Setenv("DAQIRI_DPDK", lib)
	c.Device = "vdev:net_af_packet0,iface=veth0"
}

// TestDPDKMembership does the same where we report ourselves, to queriers of both generations.
func TestDPDKMembership(t *testing.T) {
	for _, v := range []struct{ name, igmp, mld string }{{"new", "3", "2"}, {"old", "2", "1"}} {
		t.Run(v.name, func(t *testing.T) {
			c := newCable(t)
			c.dpdk()
			c.memberships(harness.Built(t), v.igmp, v.mld)
		})
	}
}

// answerScript answers for two addresses, stops answering once there is a file named silent, finds the other end's
// addresses and sends there once there is one named ask, and ends with one named end.
const answerScript = `
local daqiri = require "daqiri"
local s = daqiri.open("raw.yaml")
local i, silent, asked = s:interface("rx_port"), false, false
s:rx_queue("rx_port"):on_burst(function() end)
local function exists(name)
  local f = io.open(name)
  if f then f:close() end
  return f ~= nil
end
s:after(0, function()
  print("answers for", assert(i:answer{ addresses = { "10.98.0.77", "fd98::77" } }))
  for _, line in ipairs(s:report()) do print(line) end
end)
s:every(0.02, function()
  if not silent and exists("silent") then
    silent = true
    print("silent", i:answer{ addresses = {} })
  end
  if not asked and exists("ask") then
    asked = true
    print("neighbours", assert(i:resolve("10.98.0.1")), assert(i:resolve("fd98::1")),
      assert(i:resolve("10.97.0.1", { vlan_id = 7 })), assert(i:resolve("fd97::1", { vlan_id = 7 })))
    local tpl = s:tx_queue("rx_port"):template{ eth_dst = "auto", eth_src = "auto", ipv4_src = "10.98.0.77", ipv4_dst = "198.51.100.9",
      udp_dst = 7148, payload = "routed" }
    s:tx_queue("rx_port"):transmit{ template = tpl, count = 3 }
  end
  if exists("end") then s:stop("enough") end
end)
s:run{ seconds = 120 }
`

// rawSender is a transmit queue, what goes into rawConfig behind its rx section.
const rawSender = `
      tx:
        queues:
        - {name: t0, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [m]}
`

// resolves asks the kernel of the sending end for an address's MAC; "": nothing answers.
func (c *cable) resolves(addr string) (mac string) {
	c.T.Helper()
	harness.Until(c.T, "end of the question for "+addr, func() bool {
		_ = c.Command(c.Send, "bash", "-c", "echo x >/dev/udp/"+addr+"/9").Run()
		fields := strings.Fields(c.In(c.Send, "ip", "neigh", "show", addr, "dev", "veth0"))
		k := slices.Index(fields, "lladdr")
		if k >= 0 {
			mac = fields[k+1]
		}
		return k >= 0 || slices.Contains(fields, "FAILED")
	})
	return mac
}

// askFast has the sending end's kernel repeat its questions ten times a second.
func (c *cable) askFast() {
	c.T.Helper()
	c.In(c.Send, "sysctl", "-qw", "net.ipv4.neigh.veth0.retrans_time_ms=100", "net.ipv6.neigh.veth0.retrans_time_ms=100")
}

// answers runs the script and has the other end's kernel resolve its addresses.
func (c *cable) answers(r *rawRun, mac string) {
	c.T.Helper()
	r.wait("answers for\t2")
	for _, addr := range []string{"10.98.0.77", "fd98::77"} {
		if got := c.resolves(addr); got != mac {
			c.T.Errorf("%s is at %q, want %s", addr, got, mac)
		}
	}
	if got := c.resolves("10.98.0.78"); got != "" {
		c.T.Errorf("a host answers for 10.98.0.78: %s", got)
	}
	r.file("silent")
	r.wait("silent\t0")
	c.In(c.Send, "ip", "neigh", "flush", "dev", "veth0")
	if got := c.resolves("10.98.0.77"); got != "" {
		c.T.Errorf("it still answers: %s", got)
	}
	c.neighbours(r)
	r.file("end")
	summary := r.end(0)
	if m := regexp.MustCompile(`"answered":\s*(\d+)`).FindStringSubmatch(summary); m == nil {
		c.T.Errorf("the summary counts no answer:\n%s", summary)
	}
	if !strings.Contains(r.out.String(), "answers ARP and neighbour discovery for 10.98.0.77, fd98::77") {
		c.T.Errorf("the report does not say what is answered:\n%s", r.out.String())
	}
}

// taggedPeer has scapy answer for two addresses in VLAN 7.
const taggedPeer = `
from scapy.all import *
def answer(p):
    if Dot1Q not in p or p[Dot1Q].vlan != 7: return
    head = Ether(src="02:00:00:00:97:01", dst=p.src) / Dot1Q(vlan=7)
    if ARP in p and p[ARP].op == 1 and p[ARP].pdst == "10.97.0.1":
        sendp(head / ARP(op=2, hwsrc=head.src, psrc="10.97.0.1", hwdst=p.src, pdst=p[ARP].psrc), iface="veth0", verbose=0)
    if ICMPv6ND_NS in p and p[ICMPv6ND_NS].tgt == "fd97::1":
        sendp(head / IPv6(src="fd97::1", dst=p[IPv6].src) / ICMPv6ND_NA(tgt="fd97::1", S=1, R=0) / ICMPv6NDOptDstLLAddr(lladdr=head.src), iface="veth0", verbose=0)
sniff(iface="veth0", prn=answer, started_callback=lambda: print("listens", flush=True))
`

// tagged starts taggedPeer at the sending end; it ends with the test.
func (c *cable) tagged() {
	c.T.Helper()
	harness.Need(c.T, "scapy")
	python, _ := harness.ScapyPython()
	var out harness.Buffer
	cmd := c.Command(c.Send, python, "-c", taggedPeer)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	harness.Until(c.T, "scapy to listen", func() bool { return strings.Contains(out.String(), "listens") })
}

// neighbours has the script find the other end's kernel: by ARP and neighbour discovery; scapy, with tags; and
// as the router to where it sends the kernel, which counts what came for it.
func (c *cable) neighbours(r *rawRun) {
	c.T.Helper()
	c.In(c.Send, "ip", "addr", "add", "198.51.100.9/32", "dev", "lo")
	if c.Device == "" { // our kernel knows the way
		c.In(c.Recv, "ip", "route", "add", "198.51.100.0/24", "via", harness.SendAddr)
	}
	c.tagged()
	r.file("ask")
	mac, tagged := c.mac(c.Send), "02:00:00:00:97:01"
	r.wait(strings.Join([]string{"neighbours", mac, mac, tagged, tagged}, "\t"))
	r.until("datagrams without a socket", func() bool {
		return c.noPorts(c.Send) >= 3
	})
}

// TestRawAnswers has the kernel at the other end find addresses that no kernel has.
func TestRawAnswers(t *testing.T) {
	program := harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) {
		c.In(c.Send, "ip", "addr", "add", "fd98::1/64", "dev", "veth0", "nodad")
		c.askFast()
		r := c.raw(program, answerScript, rawSender)
		c.answers(r, c.mac(c.Recv))
	})
}

// TestDPDKAnswers does the same through DPDK, where no kernel would answer for any address.
func TestDPDKAnswers(t *testing.T) {
	program := harness.Built(t)
	c := newCable(t)
	c.dpdk()
	c.In(c.Send, "ip", "addr", "add", "fd98::1/64", "dev", "veth0", "nodad")
	c.askFast()
	c.answers(c.raw(program, answerScript, rawSender), c.mac(c.Recv))
}
