package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// whole is a configuration into which examples are inserted, with one interface of each kind.
const whole = `
version: 1
stream_type: mixed
master_core: 0
memory_regions:
- {name: packets, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}
- {name: headers, kind: host, affinity: 0, num_bufs: 64, buf_size: 64}
- {name: payload, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}
- {name: batches, kind: host, affinity: 0, num_bufs: 4, buf_size: 131072}
interfaces:
- name: port
  address: KIND
  rx:
    queues:
    - {name: a, id: 0, cpu_core: 1, batch_size: 1, memory_regions: [headers, payload]}
    - {name: b, id: 1, cpu_core: 1, batch_size: 1, memory_regions: [packets]}
    flows:
    - {name: f, id: 1, action: {type: queue, id: 1}}
`

// interfaceKind is the address of an interface and the text that follows it.
type interfaceKind struct{ address, more string }

// kinds are the interfaces required by a section's examples. Other sections use the first.
var kinds = map[string]interfaceKind{
	"":              {address: "eth1", more: "  tx:\n    queues: [{name: q, id: 0, cpu_core: 1, batch_size: 1, memory_regions: [packets]}]\n    flows: [{name: f, id: 1, action: {type: vlan_push, vlan_id: 1}}]"},
	"socket_config": {address: "10.0.0.1", more: `- {name: other, address: 10.0.0.9, socket_config: {mode: server, local_addr: "udp://10.0.0.9:1"}}`},
	"framing":       {address: "10.0.0.1\n  socket_config: {mode: server, local_addr: \"tcp://10.0.0.1:5001\"}"},
	"roce_config":   {address: "10.0.0.1\n  socket_config: {mode: server, local_addr: \"roce://10.0.0.1:5001\"}"},
	"replay":        {address: "pcap:x.pcap"},
	"data_types":    reordered,
	"method":        reordered,
}

var reordered = interfaceKind{address: "eth1", more: `    reorder_configs:
    - name: r
      reorder_type: cpu
      memory_region: batches
      payload_byte_offset: 0
      flow_ids: [1]
      method: {seq_packets_per_batch: {sequence_number: {bit_offset: 0, bit_width: 8}, packets_per_batch: 1}}`}

type example struct {
	name    string
	section *schema.Section // section of the map
	shown   map[string]any  // content of the example
	place   map[string]any  // map that contains it
	config  map[string]any  // complete configuration
	err     error           // parse error
}

// examples returns the examples of all sections, each in a configuration.
func examples(t *testing.T) (list []example) {
	t.Helper()
	for _, p := range schema.Places() {
		for n, text := range p.Examples {
			kind, ok := kinds[p.Name]
			if !ok {
				kind = kinds[""]
			}
			var e example
			for _, path := range p.Paths { // an example may apply to one direction only
				e = example{name: fmt.Sprintf("%s, example %d", p.Name, n+1)}
				for to, from := range map[any]string{&e.config: strings.Replace(whole, "KIND", kind.address, 1) + kind.more, &e.shown: text} {
					if err := yaml.Unmarshal([]byte(from), to); err != nil {
						t.Fatalf("%s: %v", e.name, err)
					}
				}
				e.put(strings.Split(path, "."))
				if _, _, e.err = ParseTable(e.config, Options{}); e.err == nil {
					break
				}
			}
			list = append(list, e)
		}
	}
	return list
}

// put inserts an example into the innermost map on the path to its section that accepts all its keys.
func (e *example) put(path []string) {
	s, m, at := schema.ConfigSection, e.config, e.config
	e.section = s
	for _, step := range path {
		fits := true
		for name := range e.shown {
			fits = fits && s.Find(name) != nil
		}
		if fits {
			e.section, at = s, m
		}
		k := s.Find(strings.TrimSuffix(step, "[]"))
		if k == nil {
			break
		}
		s = k.Map
		switch v := m[k.Name].(type) {
		case []any:
			m = v[0].(map[string]any)
		case map[string]any:
			m = v
		default:
			m = map[string]any{}
		}
		if v := s.Variant(fmt.Sprint(m["type"])); v != nil {
			s = v
		}
	}
	port := e.config["interfaces"].([]any)[0].(map[string]any)
	if port["socket_config"] != nil || e.shown["socket_config"] != nil {
		delete(port["rx"].(map[string]any), "flows") // not supported by sockets
	}
	if e.shown["actions"] != nil {
		delete(at, "action")
	}
	for name, v := range e.shown {
		if name == "memory_regions" && len(e.shown) == 1 { // keeps the others
			v = append(at[name].([]any), v.([]any)...)
		}
		at[name] = v
	}
	e.place = at
}

// TestExamples checks that every example of the reference parses inside a configuration, and that every key with an effect is in one.
func TestExamples(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range examples(t) {
		if e.err != nil {
			t.Errorf("%s: %v", e.name, e.err)
		}
		show(seen, e.section, e.shown)
	}
	for _, p := range schema.Places() {
		for _, k := range p.Rows() {
			if k.Words != "" && !seen[p.Name+" "+k.Name] {
				t.Errorf("no example has %s of %s", k.Name, p.Name)
			}
		}
	}
}

// TestEveryKeyIsRead sets each key of the examples in turn to an invalid value, which only an unread key accepts.
func TestEveryKeyIsRead(t *testing.T) {
	read := map[string]bool{}
	for _, e := range examples(t) {
		spoil(e.section, e.place, func(s *schema.Section, k *schema.Key, place map[string]any) {
			name, good := s.Name+" "+k.Name, place[k.Name]
			if read[name] || k.NoEffect != "" {
				return
			}
			place[k.Name] = map[string]any{"nothing": 1}
			if k.Map != nil || k.Items != "" {
				place[k.Name] = 0.5
			}
			_, _, err := ParseTable(e.config, Options{})
			read[name] = err != nil && strings.Contains(err.Error(), k.Name)
			place[k.Name] = good
			if !read[name] {
				t.Errorf("%s: %s takes anything: %v", e.name, name, err)
			}
		})
	}
	if len(read) < 100 {
		t.Errorf("%d keys were tried", len(read))
	}
}

// spoil visits the keys of a value in maps of this section.
func spoil(s *schema.Section, v any, visit func(*schema.Section, *schema.Key, map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, it := range v {
			spoil(s, it, visit)
		}
	case map[string]any:
		if variant := s.Variant(fmt.Sprint(v["type"])); variant != nil {
			s = variant
		}
		for name, val := range v {
			k := s.Find(name)
			if k == nil {
				continue
			}
			visit(s, k, v)
			if k.Map != nil {
				spoil(k.Map, val, visit)
			}
		}
	}
}

// show records the keys of a value in maps of this section.
func show(seen map[string]bool, s *schema.Section, v any) {
	switch v := v.(type) {
	case []any:
		for _, it := range v {
			show(seen, s, it)
		}
	case map[string]any:
		if variant := s.Variant(fmt.Sprint(v["type"])); variant != nil {
			seen[s.Name+" type"] = true
			s = variant
		}
		for name, val := range v {
			seen[s.Name+" "+name] = true
			if k := s.Find(name); k != nil && k.Map != nil {
				show(seen, k.Map, val)
			}
		}
	}
}

// TestRows checks that every row has a type and a description or NoEffect, and that its default is a valid value.
func TestRows(t *testing.T) {
	for _, p := range schema.Places() {
		if p.Words == "" {
			t.Errorf("%s: no words", p.Name)
		}
		for _, k := range p.Rows() {
			at := p.Name + "." + k.Name
			if k.Words == "" && k.NoEffect == "" || k.Takes() == "" || strings.HasSuffix(k.Takes(), "of ") {
				t.Errorf("%s: %q, %q", at, k.Takes(), k.Does())
			}
			if (k.Map != nil) != (k.Type == schema.TypeMap || k.Items == schema.TypeMap) || (k.Items != "") != (k.Type == schema.TypeList) {
				t.Errorf("%s: %s of %s with or without a map", at, k.Type, k.Items)
			}
			switch d := k.Default.(type) {
			case int:
				if k.Type == schema.TypeInteger && (int64(d) < k.Lo || int64(d) > k.Hi) {
					t.Errorf("%s: the default %d is out of range", at, d)
				}
			case string:
				if _, err := ParseDuration(d); k.Type == schema.TypeDuration && err == nil {
					continue
				}
				if !slices.Contains(k.Choices, d) {
					t.Errorf("%s: the default %q is no choice", at, d)
				}
			}
		}
	}
}

// TestUnknownRow checks that a getter without a row, or for another type, panics.
func TestUnknownRow(t *testing.T) {
	for name, read := range map[string]func(o *object){
		"no row":     func(o *object) { o.boolean("num_buf") },
		"other type": func(o *object) { o.boolean("num_bufs") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			read(&object{p: &parser{}, sec: schema.RegionSection})
		}()
	}
}
