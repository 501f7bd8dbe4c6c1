package suite

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// reference is what TestAPIReference compares with testdata/reference.txt.
type reference struct {
	names       map[string][]string // of daqiri.api: the keys of an enum; nil for others
	kinds       map[string]string   // function, table, number, string
	sections    map[string][]string // keys of the configuration, by section
	differences string
	listed      map[string]bool // functions in the file
}

// check returns what a line of the file claims that is not so.
func (r *reference) check(line string) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	kind, rest, _ := strings.Cut(line, " ")
	pending := kind == "pending"
	if pending {
		kind, rest, _ = strings.Cut(rest, " ")
	}
	name, words := "", rest
	if kind == "enum" || kind == "structure" {
		name, words, _ = strings.Cut(rest, ": ")
	}
	here := r.finder(kind, name, say)
	if here == nil {
		return append(wrong, "this is not a valid line")
	}
	for word := range strings.FieldsSeq(words) {
		missing := strings.HasPrefix(word, "-")
		word = strings.TrimPrefix(word, "-")
		if kind == "function" {
			r.listed[word] = true
		}
		switch found := here(word); {
		case pending:
		case missing && found:
			say("%s is there, but listed as missing", word)
		case missing && !strings.Contains(r.differences, "`"+word+"`"):
			say("%s is missing, and DIFFERENCES.md does not name it", word)
		case !missing && !found:
			say("%s is not there", word)
		}
	}
	if pending {
		return nil
	}
	return wrong
}

// finder returns a function that reports whether a name of the line exists; nil for an invalid line.
func (r *reference) finder(kind, name string, say func(string, ...any)) func(string) bool {
	switch kind {
	case "function":
		return func(word string) bool { return r.kinds[word] == kind }
	case "constant":
		return func(word string) bool { return r.kinds[word] == "number" || r.kinds[word] == "string" }
	case "enum":
		return func(word string) bool { return slices.Contains(r.names[name], word) }
	case "structure":
		_, place, _ := strings.Cut(name, " in ")
		if strings.HasSuffix(place, ".lua") {
			text, err := os.ReadFile(apiFolder + place)
			if err != nil {
				say("%v", err)
			}
			return func(word string) bool { return regexp.MustCompile(`\b` + word + `\b`).Match(text) }
		}
		if r.sections[place] == nil {
			say("the configuration has no section %s", place)
		}
		return func(word string) bool { return slices.Contains(r.sections[place], word) }
	}
	return nil
}

func readReference(t *testing.T) *reference {
	t.Helper()
	o := run(t, "names.lua", `
		for name, value in pairs(require "daqiri.api") do
			local values = {}
			for key in pairs(type(value) == "table" and value or {}) do values[#values + 1] = key end
			print(name, type(value), table.concat(values, " "))
		end`, func(rt *bindings.Runtime) { rt.NewState = newStdlibState })
	text, err := os.ReadFile(apiFolder + "DIFFERENCES.md")
	if err != nil || o.err != nil {
		t.Fatal(err, o.err)
	}
	r := &reference{names: map[string][]string{}, kinds: map[string]string{}, sections: map[string][]string{}, differences: string(text),
		listed: map[string]bool{}}
	for line := range strings.Lines(o.out) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		r.kinds[parts[0]], r.names[parts[0]] = parts[1], strings.Fields(parts[2])
	}
	for _, place := range schema.Places() {
		for _, key := range place.Keys {
			r.sections[place.Name] = append(r.sections[place.Name], key.Name)
		}
	}
	return r
}

// TestAPIReference compares daqiri.api with the reference's names: each is there, or DIFFERENCES.md names it.
func TestAPIReference(t *testing.T) {
	r := readReference(t)
	text, err := os.ReadFile("testdata/reference.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, wrong := range r.check(line) {
			t.Errorf("%s:\n\t%s", line, wrong)
		}
	}
	for name := range apiFunctions {
		if !r.listed[name] {
			t.Errorf("testdata/reference.txt does not have the function %s", name)
		}
	}
}

// TestAPIReferenceNotices checks lines that are wrong.
func TestAPIReferenceNotices(t *testing.T) {
	r := readReference(t)
	for line, want := range map[string]string{
		"function get_rx_burst get_rx_bursts":              "get_rx_bursts is not there",
		"function Status":                                  "Status is not there",
		"function -get_rx_burst":                           "get_rx_burst is there, but listed as missing",
		"function -get_rx_bursts":                          "DIFFERENCES.md does not name it",
		"constant MAX_NUM_QUEUES":                          "MAX_NUM_QUEUES is not there",
		"enum Status: SUCCESS FAILURE":                     "FAILURE is not there",
		"structure NetworkConfig in cfg: version versions": "versions is not there",
		"structure NetworkConfig in config: version":       "no section config",
		"structure FlowOpResult in flow.lua: op_ids":       "op_ids is not there",
		"functions get_rx_burst":                           "not a valid line",
	} {
		if wrong := r.check(line); len(wrong) == 0 || !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("%s: %q, want %q", line, wrong, want)
		}
	}
	if wrong := r.check("pending function later"); wrong != nil {
		t.Errorf("a pending name is an error: %q", wrong)
	}
}
