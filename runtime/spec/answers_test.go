package spec

import (
	"fmt"
	"testing"
)

func TestAnswers(t *testing.T) {
	tests := []struct{ list, want, fault string }{
		{`[10.9.1.7, "fd98::7"]`, "[10.9.1.7 fd98::7]", ""},
		{"[]", "[]", ""},
		{`["::ffff:10.9.1.7"]`, "[10.9.1.7]", ""},
		{"[10.9.1]", "", `interfaces[0].answers[0]: "10.9.1" is not an IPv4 or IPv6 address`},
		{`["fe80::1%eth0"]`, "", `"fe80::1%eth0" is not an IPv4 or IPv6 address`},
		{"[10.9.1.7, 10.9.1.7]", "", `interfaces[0].answers[1]: "10.9.1.7" is listed twice`},
		{"10.9.1.7", "", "where a list is expected"},
	}
	for _, tt := range tests {
		cfg, _, err := ParseText("x.yaml", fmt.Sprintf(replayed, "sw", "pcap:a", "{}\n  answers: "+tt.list), Options{})
		checkFault(t, err, tt.fault)
		if err != nil {
			continue
		}
		if got := fmt.Sprint(cfg.Interfaces[0].Answers); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.list, got, tt.want)
		}
	}
}
