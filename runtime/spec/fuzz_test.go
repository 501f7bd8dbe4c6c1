package spec

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
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

// TestDamagedFiles parses the good configurations with deterministic damage: changed, removed and inserted bytes, lines and words. No text makes the
// parser panic, and every error has a line of the file.
func TestDamagedFiles(t *testing.T) {
	const files = 3000
	docs, random, refused := documents(t), rand.New(rand.NewPCG(1, 2)), 0
	for n := range files {
		text := damage(docs[n%len(docs)].text, n/len(docs), random)
		cfg, _, err := ParseText("f.yaml", text, Options{})
		for _, is := range faults(t, cfg, err) {
			if is.Pos.Line < 1 || is.Pos.Line > strings.Count(text, "\n")+1 || is.Text == "" {
				t.Errorf("file %d: an error without a line: %+v\n%s", n, is, text)
			}
		}
		if err != nil {
			refused++
		} else if _, err := json.Marshal(Inspect(cfg)); err != nil {
			t.Error(err)
		}
	}
	if refused < files/2 {
		t.Errorf("%d of %d damaged files are refused: the damage has no effect", refused, files)
	}
}

// damage changes a text in one of several ways, up to three times.
func damage(text string, kind int, random *rand.Rand) string {
	values := []string{"", "-1", "1e9", "~", "[1, 2]", "{a: 1}", "\"x\"", "true", "99999999999999999999", "&a", "*a", "<<", "!!int", "0x", "|"}
	for range 1 + random.IntN(3) {
		lines := strings.Split(text, "\n")
		k := random.IntN(len(lines))
		switch kind % 6 {
		case 0: // a byte
			at := random.IntN(len(text))
			text = text[:at] + string([]byte{byte(random.IntN(256))}) + text[at+1:]
			continue
		case 1: // a part is removed
			at := random.IntN(len(text))
			text = text[:at] + text[min(len(text), at+1+random.IntN(40)):] + "\n"
			continue
		case 2: // a line is removed
			lines = slices.Delete(lines, k, k+1)
		case 3: // a line comes twice
			lines = slices.Insert(lines, k, lines[k])
		case 4: // another value
			if at := strings.Index(lines[k], ": "); at >= 0 {
				lines[k] = lines[k][:at+2] + values[random.IntN(len(values))]
			}
		case 5: // another indentation, or a key with another name
			if trimmed := strings.TrimLeft(lines[k], " "); random.IntN(2) == 0 && trimmed != "" {
				lines[k] = strings.Repeat(" ", random.IntN(12)) + trimmed
			} else {
				lines[k] = strings.Replace(lines[k], ":", "x:", 1)
			}
		}
		if text = strings.Join(lines, "\n"); text == "" {
			return "\n"
		}
	}
	return text
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
