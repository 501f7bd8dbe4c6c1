package spec

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseFlows(t *testing.T) {
	queue := func(id float64) map[string]any { return map[string]any{"type": "queue", "id": id} }
	flows, err := ParseFlows([]any{
		map[string]any{"name": "a", "match": map[string]any{"udp_dst": 7148.0, "ipv4_dst": "239.2.0.64"}, "action": queue(0)},
		map[string]any{"action": map[string]any{"type": "queue", "ids": []any{0.0, 1.0}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(flows) != 2 || flows[0].Name != "a" || flows[0].Match.UDPDst.First != 7148 || flows[1].Name != "" {
		t.Errorf("flows are %+v", flows)
	}
	if got := flows[1].QueueIDs(); !reflect.DeepEqual(got, []int{0, 1}) {
		t.Errorf("queues are %v", got)
	}
}

func TestParseFlowsFaults(t *testing.T) {
	cases := map[string]struct {
		in   any
		want string
	}{
		"no list":      {"x", "where a list of flows is expected"},
		"misspelt key": {[]any{map[string]any{"action": map[string]any{"type": "queue", "id": 0.0}, "mach": 1.0}}, `flows[0].mach: unknown key; did you mean "match"?`},
		"own id":       {[]any{map[string]any{"id": 3.0, "action": map[string]any{"type": "queue", "id": 0.0}}}, "the session gives dynamic flows their ids"},
		"no action":    {[]any{map[string]any{"name": "a"}}, "action or actions"},
		"port":         {[]any{map[string]any{"match": map[string]any{"udp_dst": 70000.0}, "action": map[string]any{"type": "queue", "id": 0.0}}}, "flows[0].match.udp_dst"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseFlows(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseMatch(t *testing.T) {
	m, err := ParseMatch(map[string]any{"udp_src": "1000-1010"})
	if err != nil || *m.UDPSrc != (PortRange{1000, 1010}) {
		t.Errorf("match is %+v, %v", m, err)
	}
	if _, err := ParseMatch(map[string]any{"udp_dts": 1.0}); err == nil || !strings.Contains(err.Error(), `did you mean "udp_dst"?`) {
		t.Errorf("error is %v", err)
	}
}
