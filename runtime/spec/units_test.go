package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestUnits(t *testing.T) {
	tests := []struct {
		name  string
		parse func(string) (int64, error)
		text  string
		want  int64
		fault string
	}{
		{"rate", ParseRate, "10Gbit/s", 10e9, ""},
		{"rate in bps", ParseRate, "9.5Gbps", 9.5e9, ""},
		{"rate in b/s", ParseRate, "100Mb/s", 100e6, ""},
		{"rate with exponent", ParseRate, "1e9bit/s", 1e9, ""},
		{"rate with space", ParseRate, " 250 kbit/s ", 250e3, ""},
		{"plain bits", ParseRate, "12", 0, `"12" has no unit: write it like "12bit/s"`},
		{"plain bytes", ParseSize, " +1e3 ", 0, `"1e3" has no unit: write it like "1e3B"`},
		{"zero", ParseSize, "0", 0, `"0" has no unit`},
		{"rate in bytes", ParseRate, "10GB/s", 0, `unknown unit "GB/s" (known: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)`},
		{"half a bit", ParseRate, "0.5bit/s", 0, "not a whole number of bits per second"},
		{"negative", ParseRate, "-1Gbit/s", 0, `is not a rate (write it like "10Gbit/s")`},
		{"size", ParseSize, "8KiB", 8192, ""},
		{"size with fraction", ParseSize, "1.5GiB", 3 << 29, ""},
		{"decimal size", ParseSize, "1MB", 1e6, ""},
		{"thousands", ParseSize, "2kB", 2000, ""},
		{"thousands in capitals", ParseSize, "2KB", 2000, ""},
		{"bytes", ParseSize, "7B", 7, ""},
		{"millions", ParseSize, "3MiB", 3 << 20, ""},
		{"billions", ParseSize, "2GB", 2e9, ""},
		{"large decimal size", ParseSize, "2TB", 2e12, ""},
		{"largest unit", ParseSize, "2TiB", 2 << 40, ""},
		{"large rate", ParseRate, "2Tbit/s", 2e12, ""},
		{"hours", ParseDuration, "2h", 7200e9, ""},
		{"large size", ParseSize, "64GiB", 64 << 30, ""},
		{"too large", ParseSize, "99999999TiB", 0, "too large"},
		{"huge exponent", ParseSize, "1e999999999", 0, "is not a size"},
		{"empty", ParseSize, "", 0, "is not a size"},
		{"duration", ParseDuration, "2us", 2000, ""},
		{"micro sign", ParseDuration, "2µs", 2000, ""},
		{"milliseconds", ParseDuration, "5ms", 5e6, ""},
		{"seconds with fraction", ParseDuration, "1.5s", 1.5e9, ""},
		{"plain nanoseconds", ParseDuration, "100", 0, `"100" has no unit: write it like "100ns"`},
		{"leading point", ParseDuration, ".5us", 500, ""},
		{"minutes", ParseDuration, "2min", 120e9, ""},
		{"part of a nanosecond", ParseDuration, "1.5ns", 0, "not a whole number of nanoseconds"},
		{"unit alone", ParseDuration, "ms", 0, "is not a duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse(tt.text)
			checkFault(t, err, tt.fault)
			if err == nil && got != tt.want {
				t.Errorf("%q = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
}

// checkFault checks for an error that contains text, or for none if text is empty.
func checkFault(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("unexpected fault: %v", err)
	case text != "" && err == nil:
		t.Errorf("no fault, want %q", text)
	case text != "" && !strings.Contains(err.Error(), text):
		t.Errorf("fault %q does not contain %q", err, text)
	}
}

func TestParseEndpoint(t *testing.T) {
	tests := []struct{ uri, want, fault string }{
		{"udp://127.0.0.1:5001", "udp://127.0.0.1:5001", ""},
		{"tcp://[::1]:6001", "tcp://[::1]:6001", ""},
		{"tcp://[fe80::1%eth0]:6001", "tcp://[fe80::1%eth0]:6001", ""},
		{"udp://camera-3.example.org:7148", "udp://camera-3.example.org:7148", ""},
		{"roce://10.0.0.1", "roce://10.0.0.1", ""},
		{"rdma://10.0.0.1:4096?engine=ibverbs", "roce://10.0.0.1:4096", ""},
		{"udp://10.0.0.1:0", "", `port "0" is not a number in 1..65535`},
		{"udp://10.0.0.1:65536", "", "port"},
		{"udp://10.0.0.1:+5", "", "port"},
		{"udp://10.0.0.1:", "", "port"},
		{"udp://10.0.0.1:50x", "", "port"},
		{"udp://::1:5001", "", "needs brackets"},
		{"udp://[::1:5001", "", "not closed"},
		{"udp://[::1]5001", "", `unexpected "5001"`},
		{"udp://[10.0.0.1]:5001", "", "not an IPv6 address"},
		{"udp://:5001", "", "host is missing"},
		{"udp://10.0.0:5001", "", "not an IPv4 address"},
		{"udp://a/b:5001", "", "neither an address nor a host name"},
		{"sctp://10.0.0.1:1", "", `unknown scheme "sctp"`},
		{"10.0.0.1:5001", "", "has no scheme"},
		{"udp://10.0.0.1:1?engine=ibverbs", "", "unknown query"},
		{"roce://10.0.0.1:1?engine=dpdk", "", "unknown query"},
	}
	for _, tt := range tests {
		t.Run(tt.uri, func(t *testing.T) {
			e, err := ParseEndpoint(tt.uri)
			checkFault(t, err, tt.fault)
			if err == nil && e.String() != tt.want {
				t.Errorf("got %s, want %s", e, tt.want)
			}
		})
	}
}

// TestQuantities sets keys with a unit to numbers, text with a unit, and numbers as text, which are rejected.
func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		keys        string
		delay, rate int64
		fault       string
	}{
		{`delay: 100, rate: 1000`, 100, 1000, ""},
		{`delay: 5us, rate: "1kbit/s"`, 5000, 1000, ""},
		{`delay: "100"`, 0, 0, `loopback.delay: "100" has no unit: give the number 100, or text with a unit, "100ns"`},
		{`rate: '1e3'`, 0, 0, `loopback.rate: "1e3" has no unit: give the number 1e3, or text with a unit, "1e3bit/s"`},
		{`delay: 1.5`, 0, 0, "is not a whole number of nanoseconds"},
	} {
		text := fmt.Sprintf(replayed, "{mode: sw, "+tt.keys+"}", "pcap:a", "{}")
		cfg, _, err := ParseText("x.yaml", text, Options{})
		checkFault(t, err, tt.fault)
		if err == nil && (cfg.Loopback.DelayNS != tt.delay || int64(cfg.Loopback.RateBPS) != tt.rate) {
			t.Errorf("%s: %+v", tt.keys, cfg.Loopback)
		}
	}
}
