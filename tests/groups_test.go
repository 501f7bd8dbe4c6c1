package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	c.t.Helper()
	c.in(c.send, "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "1", "mcast_igmp_version", igmp, "mcast_mld_version", mld,
		"mcast_querier", "1", "mcast_query_interval", "200", "mcast_query_response_interval", "100", "mcast_last_member_interval", "20",
		"mcast_membership_interval", "600")
	c.in(c.send, "ip", "addr", "add", "10.98.0.9/24", "dev", "br0")
	c.in(c.send, "ip", "link", "set", "veth0", "master", "br0")
	c.in(c.send, "ip", "link", "set", "br0", "up")
}

// members lists the groups that the bridge at the sending end has members of behind the cable.
func (c *cable) members() string {
	c.t.Helper()
	return c.in(c.send, "bridge", "-d", "mdb", "show", "dev", "br0")
}

func (r *rawRun) file(name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

var memberLine = regexp.MustCompile(`(?m)^.*port veth0 grp (\S+)( src (\S+))?.*$`)

// isMember tells whether the bridge has the group, with this source where it notes one ("": of any).
func (c *cable) isMember(group, source string) bool {
	for _, m := range memberLine.FindAllStringSubmatch(c.members(), -1) {
		if m[1] == group && (source == "" || m[3] == source) {
			return true
		}
	}
	return false
}

// TestRawMembership joins and leaves groups on a raw interface; a bridge of the kernel's at the other end notes it.
func TestRawMembership(t *testing.T) {
	program := built(t)
	c := newCable(t)
	c.snooping("3", "2")
	r := c.raw(program, joinScript, "")
	r.wait("joined")
	for _, want := range []string{"clash\tnil\tGENERIC_FAILURE", "leave it first", "stranger\tnil\tGENERIC_FAILURE", "it was not joined"} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("the script does not print %q:\n%s", want, r.out.String())
		}
	}
	r.until("member of all groups", func() bool {
		return c.isMember("239.9.1.1", "") && c.isMember("232.9.1.2", "10.98.0.1") && c.isMember("ff15::9:1", "")
	})
	r.file("leave")
	r.wait("left\n")
	r.until("end of two memberships", func() bool { return !c.isMember("239.9.1.1", "") && !c.isMember("ff15::9:1", "") })
	if !c.isMember("232.9.1.2", "10.98.0.1") {
		t.Errorf("the third group was left, too:\n%s", c.members())
	}
	r.file("end")
	r.end(0)
	until(t, "end of the last membership", func() bool { return !c.isMember("232.9.1.2", "") })
}
