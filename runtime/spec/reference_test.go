package spec

import (
	"strings"
	"testing"
)

// endpoints returns a configuration of sockets with the given top-level keys and one line per interface.
func endpoints(top string, interfaces ...string) string {
	text := "version: 1\nstream_type: socket\nmaster_core: 0\n" + top +
		"memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]\ninterfaces:\n"
	for _, i := range interfaces {
		text += "- {name: " + i + ", rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 1, memory_regions: [m]}]}}\n"
	}
	return text
}

const (
	udpServer = `s, address: 10.0.0.1, socket_config: {mode: server, local_addr: "udp://10.0.0.1:5001"}`
	roce      = `, roce_config: {transport_mode: RC}`
)

func client(keys string) string {
	return "c, address: 10.0.0.2, socket_config: {mode: client, " + keys + "}"
}

// TestReferenceAccepts checks inputs that the reference's parser accepts, in addition to its files.
func TestReferenceAccepts(t *testing.T) {
	const remote = `remote_addr: "udp://10.0.0.1:5001"`
	local := func(c *Config) string { return c.Interfaces[len(c.Interfaces)-1].SocketConfig.Local.String() }
	for _, tt := range []struct {
		name, text string
		get        func(*Config) string
		want       string
	}{
		{"local_ip alone", endpoints("", client(remote+", local_ip: 10.0.0.2")), local, "udp://10.0.0.2"},
		{"local_port alone", endpoints("", client(remote+", local_port: 7000")), local, "udp://0.0.0.0:7000"},
		{"local_port alone, IPv6", endpoints("", client(`remote_addr: "udp://[::1]:5001", local_port: 7000`)), local, "udp://[::]:7000"},
		{"scheme of the other end", endpoints("", udpServer, client(`remote_addr: "tcp://10.0.0.1:5001", local_ip: 10.0.0.2`)), local, "tcp://10.0.0.2"},
		{"scheme of engine ibverbs", endpoints("engine: ibverbs\n", client("local_ip: 10.0.0.2")+roce), local, "roce://10.0.0.2"},
		{"roce port 0", endpoints("", client(`local_addr: "roce://10.0.0.2:0"`)+roce), local, "roce://10.0.0.2"},
		{"log_level in capitals", "log_level: INFO\n" + endpoints("", udpServer), func(c *Config) string { return c.LogLevel }, "info"},
		{"neither rx nor tx", strings.Replace(endpoints("", udpServer), ", rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 1, memory_regions: [m]}]}", "", 1),
			func(c *Config) string { return c.Interfaces[0].Name }, "s"},
		{"max_payload_size beyond 16 bits", endpoints("", client(remote+", max_payload_size: 1048576")),
			func(c *Config) string { return strings.Repeat("0", 1+c.Interfaces[0].SocketConfig.MaxPayloadSize) }, "0"},
	} {
		cfg, _, err := ParseText(tt.name, tt.text, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := tt.get(cfg); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestMasterCore checks for a warning if a queue uses the core that should not process packets, and for none otherwise.
func TestMasterCore(t *testing.T) {
	for core, want := range map[string]int{"0": 1, "1": 0, "-1": 0} {
		_, warnings, err := ParseText("cores", strings.Replace(endpoints("", udpServer), "cpu_core: -1", "cpu_core: "+core, 1), Options{})
		if err != nil || len(warnings) != want || want > 0 && !strings.Contains(warnings[0].Error(), "cpu_core: core 0 is the master_core") {
			t.Errorf("cpu_core %s: %v, %v", core, warnings, err)
		}
	}
}

// TestReferenceRefuses checks inputs that the reference's parser rejects.
func TestReferenceRefuses(t *testing.T) {
	const remote = `remote_addr: "udp://10.0.0.1:5001"`
	direct := func(key string) string {
		return strings.Replace(Default(), "poll_mode: direct\n", "poll_mode: direct\n          "+key+"\n", 1)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a client's address without a port", endpoints("", client(remote+`, local_addr: "udp://10.0.0.2"`)), "local_addr: needs a port"},
		{"a server's port 0", endpoints("", strings.Replace(udpServer, "udp://10.0.0.1:5001", "roce://10.0.0.1:0", 1)+roce), "a server needs a port"},
		{"a server's peer without a port", endpoints("", `s, address: 10.0.0.1, socket_config: {mode: server, local_addr: "roce://10.0.0.1:1", remote_addr: "roce://10.0.0.2:0"}`+roce), "a remote address needs a port"},
		{"udp port 0", endpoints("", client(`remote_addr: "udp://10.0.0.1:0"`)), `port "0" is not a number in 1..65535`},
		{"a server's local_port alone", endpoints("", udpServer, `t, address: 10.0.0.3, socket_config: {mode: server, local_port: 5002}`), "local_port: needs local_ip"},
		{"remote_port alone", endpoints("", udpServer, client("remote_port: 5002")), "remote_port: needs remote_ip"},
		{"no scheme at all", endpoints("", client("remote_ip: 10.0.0.1, remote_port: 5001")), "remote_ip: has no scheme"},
		{"both forms", endpoints("", client(remote+", remote_port: 5001")), "keep remote_addr only"},
		{"a level that is none", "log_level: LOUD\n" + endpoints("", udpServer), `log_level: "LOUD" is not one of`},
		{"negative payload", endpoints("", client(remote+", max_payload_size: -1")), "max_payload_size: -1 is outside"},
		{"direct with cpu_core", direct("cpu_core: 3"), "cpu_core: has no place with poll_mode direct"},
		{"direct with timeout_us", direct("timeout_us: 3"), "timeout_us: has no place with poll_mode direct"},
		{"an MTU that is none", endpoints("", client(`local_addr: "roce://10.0.0.2"`)+`, roce_config: {transport_mode: RC, mtu: 1500}`), "mtu: 1500 is not one of 256"},
		{"tcp with roce_config", endpoints("", udpServer+roce), "roce_config: belongs to roce:// endpoints"},
	} {
		_, _, err := ParseText(tt.name, tt.text, Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
