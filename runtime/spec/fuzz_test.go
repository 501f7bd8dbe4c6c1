package spec

import (
	"encoding/json"
	"testing"
)

// FuzzParse checks that no text makes the parser panic, that every error has a position, and that accepted configurations can be inspected.
func FuzzParse(f *testing.F) {
	for _, d := range documents(f) {
		f.Add(d.text)
	}
	f.Add("a: &a [*a]")
	f.Add("%YAML 1.2\n---\n<<: {version: 1}\n? [x]\n: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, _, err := ParseText("f.yaml", text, Options{})
		for _, is := range faults(t, cfg, err) {
			if is.Pos.File != "f.yaml" || is.Pos.Line < 1 || is.Pos.Column < 1 || is.Text == "" {
				t.Errorf("fault without a position: %+v", is)
			}
		}
		if err == nil {
			if _, err := json.Marshal(Inspect(cfg)); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzOverride checks that no path or value makes the parser panic.
func FuzzOverride(f *testing.F) {
	f.Add("interfaces.rx_port.rx.queues.0.batch_size", "5")
	f.Add("interfaces[0][0]", "{a: [1, 2]}")
	f.Fuzz(func(t *testing.T, path, value string) {
		_, _, err := ParseText("f.yaml", twoQueues, Options{Set: []Override{{Path: path, Text: value}}})
		if err != nil && err.Error() == "" {
			t.Error("a fault without a text")
		}
	})
}

// FuzzUnits checks that unit parsers never panic or return a negative number.
func FuzzUnits(f *testing.F) {
	for _, s := range []string{"10Gbit/s", "8KiB", "1.5s", "1e9", ".5us", "9e99TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (int64, error){ParseRate, ParseSize, ParseDuration} {
			if v, err := parse(text); v < 0 || err != nil && v != 0 {
				t.Errorf("%q: %d, %v", text, v, err)
			}
		}
		if e, err := ParseEndpoint(text); err == nil {
			if again, err := ParseEndpoint(e.String()); err != nil || again.String() != e.String() {
				t.Errorf("%q reads back as %v, %v", e, again, err)
			}
		}
	})
}
