package spec

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const rendered = `# Two regions.
daqiri:
  cfg:
    version: 1
    stream_type: raw # frames
    master_core: 0
    loopback: sw

    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}
    interfaces:
    - name: rx_port
      address: <address>
      rx:
        queues:
        - {name: low, id: 1, cpu_core: 1, batch_size: 8, memory_regions: [m]}
        - {name: high, id: 0, cpu_core: 2, batch_size: 8, memory_regions: &both [m]}
      tx:
        queues:
        - {name: out, id: 0, cpu_core: 2, batch_size: 8, memory_regions: *both}
bench_tx:
- {eth_dst_addr: <00:00:00:00:00:00>, a/b: 1}
`

func TestRender(t *testing.T) {
	filled := []string{"interfaces.rx_port.address=loop0", "/bench_tx/0/eth_dst_addr=02:00:00:00:00:01"}
	tests := []struct {
		name, set, want, fault string
	}{
		{"filled", "master_core=1", "master_core: 1\n", ""},
		{"comments", "master_core=1", "stream_type: raw # frames\n", ""},
		{"a value with a comment", "stream_type=mixed", "stream_type: mixed # frames\n", ""},
		{"by id", "interfaces.rx_port.rx.queues.0.batch_size=16", "{name: high, id: 0, cpu_core: 2, batch_size: 16,", ""},
		{"by name", "daqiri.cfg.interfaces.rx_port.rx.queues.low.batch_size=16", "{name: low, id: 1, cpu_core: 1, batch_size: 16,", ""},
		{"by index", "interfaces[0].rx.queues[0].batch_size=16", "{name: low, id: 1, cpu_core: 1, batch_size: 16,", ""},
		{"pointer", "/daqiri/cfg/memory_regions/0/num_bufs=128", "num_bufs: 128", ""},
		{"pointer by index", "/daqiri/cfg/interfaces/0/rx/queues/0/batch_size=16", "{name: low, id: 1, cpu_core: 1, batch_size: 16,", ""},
		{"name in a pointer", "/daqiri/cfg/interfaces/rx_port/address=x", "", `no element is called "rx_port"`},
		{"escaped pointer", "/bench_tx/0/a~1b=2", "a/b: 2", ""},
		{"section", "bench_tx[0].a/b=2", "a/b: 2", ""},
		{"list", "interfaces.rx_port.rx.queues.low.memory_regions=[m, m]", "memory_regions: [m, m]", ""},
		{"empty text", "/bench_tx/0/a~1b=", `a/b: ""`, ""},
		{"text that is a number", `/bench_tx/0/a~1b="2"`, `a/b: "2"`, ""},

		{"unknown key", "interfaces.rx_port.rx.queues.low.bach_size=1", "", `no key "bach_size"; did you mean "batch_size"?`},
		{"key that is not there", "interfaces.rx_port.rx.queues.low.timeout_us=1", "", `no key "timeout_us"`},
		{"unknown name", "interfaces.tx_port.address=x", "", `no element is called "tx_port"`},
		{"index outside", "/daqiri/cfg/interfaces/1/address=x", "", "index 1 is outside a list of 1"},
		{"below a scalar", "/daqiri/cfg/version/x=1", "", `"x": the value above it has no parts`},
		{"below an alias", "interfaces.rx_port.tx.queues.out.memory_regions[0]=n", "", "below the alias *both"},
		{"value of a wrong type", "master_core=zero", "", "f.yaml:6:5: master_core: "},
		{"broken value", "master_core=[1", "", `the value "[1"`},
		{"placeholder", "/bench_tx/0/a~1b=<b>", "", "f.yaml:22:44: bench_tx[0].a/b: placeholder not filled: <b>"},
		{"bad path", "interfaces[x].address=a", "", "brackets hold an index"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var set []Override
			for _, arg := range append(slices.Clone(filled), test.set) {
				o, err := ParseOverride(arg)
				if err != nil {
					t.Fatal(err)
				}
				set = append(set, o)
			}
			text, err := Render("f.yaml", rendered, set)
			switch {
			case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
				t.Errorf("error %v, want %q", err, test.fault)
			case test.fault == "" && err != nil:
				t.Error(err)
			case !strings.Contains(text, test.want):
				t.Errorf("no %q in\n%s", test.want, text)
			}
			if again, _ := Render("f.yaml", rendered, set); again != text {
				t.Error("the second time other bytes")
			}
		})
	}
	if _, err := Render("f.yaml", rendered, nil); err == nil || !strings.Contains(err.Error(), "f.yaml:13:7: interfaces[0].address: placeholder not filled: <address>") {
		t.Errorf("with placeholders: %v", err)
	}
	if _, err := Render("f.yaml", "", nil); err == nil {
		t.Error("an empty text was rendered")
	}
}

// TestRenderKeeps renders files with no change: the result has the same meaning.
func TestRenderKeeps(t *testing.T) {
	files, _ := filepath.Glob("../../scripts/*/*.yaml")
	if len(files) == 0 {
		t.Fatal("no file found")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Render(file, string(data), nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		before, _, _ := ParseText(file, string(data), Options{})
		after, _, err := ParseText(file, text, Options{})
		if err != nil || !reflect.DeepEqual(before.written.value(), after.written.value()) {
			t.Errorf("%s: %v, now\n%s", file, err, text)
		}
		if twice, _ := Render(file, text, nil); twice != text {
			t.Errorf("%s: rendered again it differs", file)
		}
	}
}
