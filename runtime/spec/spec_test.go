package spec

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// templates is the folder of files in the form that the reference ships: with placeholders, and with sections of its programs after the
// configuration.
var templates = filepath.Join("testdata", "templates")

// document is a configuration file with its placeholders replaced.
type document struct {
	name, text string
}

func documents(t testing.TB) []document {
	t.Helper()
	var docs []document
	for _, dir := range []string{filepath.Join("testdata", "good"), templates} {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			docs = append(docs, document{filepath.Base(f), fill(read(t, f))})
		}
	}
	if len(docs) == 0 {
		t.Fatal("no configurations to test with")
	}
	return append(docs, document{"default.yaml", Default()})
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	bdfPlaceholder = regexp.MustCompile(`<[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]>`)
	appSection     = regexp.MustCompile(`(?m)^(rdma_)?bench_`) // first section after the configuration
	anyPlaceholder = regexp.MustCompile(`<([^<>]*)>`)
)

// fill replaces the placeholders of a template.
func fill(text string) string {
	return anyPlaceholder.ReplaceAllString(bdfPlaceholder.ReplaceAllString(text, "0000:3b:00.0"), "$1")
}

// issues returns the errors of parsing a text.
func issues(t testing.TB, name, text string, opts Options) []Issue {
	t.Helper()
	cfg, _, err := ParseText(name, text, opts)
	return faults(t, cfg, err)
}

func faults(t testing.TB, cfg *Config, err error) []Issue {
	t.Helper()
	if err == nil {
		return nil
	}
	var all *Errors
	if !errors.As(err, &all) {
		t.Fatalf("not an *Errors: %v", err)
	}
	if cfg != nil {
		t.Error("a configuration in spite of faults")
	}
	return all.Issues
}

func TestGoodFilesAreClean(t *testing.T) {
	for _, d := range documents(t) {
		t.Run(d.name, func(t *testing.T) {
			cfg, _, err := ParseText(d.name, d.text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(cfg.Interfaces) == 0 {
				t.Error("no interfaces")
			}
		})
	}
}

// TestPlaceholders checks that exactly the placeholders of a template are reported.
func TestPlaceholders(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(templates, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no templates: ", err)
	}
	for _, f := range files {
		text := read(t, f)
		cfg := appSection.Split(text, 2)[0]
		want := len(anyPlaceholder.FindAllString(cfg, -1))
		got := 0
		for _, is := range issues(t, f, text, Options{}) {
			if !strings.Contains(is.Text, "placeholder not filled") {
				t.Errorf("%v", is)
			}
			got++
		}
		if got != want {
			t.Errorf("%s: %d placeholders reported, %d are there", filepath.Base(f), got, want)
		}
	}
}

// place is a value of a document and its range in the text.
type place struct {
	path string
	line int // expected line of its error
	from int // range of the text to replace
	to   int
	key  bool
	node *node
}

// places returns all keys and scalars of the configuration part of a document.
func places(t *testing.T, d document) []place {
	t.Helper()
	p := &parser{}
	root := p.readYAML(d.name, []byte(d.text))
	if len(p.issues) > 0 {
		t.Fatal(p.issues)
	}
	offsets := []int{0}
	for i, c := range d.text {
		if c == '\n' {
			offsets = append(offsets, i+1)
		}
	}
	at := func(pos Pos) int { return offsets[pos.Line-1] + pos.Column - 1 }
	var list []place
	seen := map[int]bool{}
	add := func(pl place) {
		if !seen[pl.from] && pl.node.tag != "" || pl.key && !seen[pl.from] {
			seen[pl.from] = true
			list = append(list, pl)
		}
	}
	var walk func(n *node, path string, line int)
	walk = func(n *node, path string, line int) {
		from := at(n.pos)
		spelled := n.text
		if from < len(d.text) && (d.text[from] == '"' || d.text[from] == '\'') {
			spelled = d.text[from : from+len(n.text)+2]
		}
		if strings.HasPrefix(d.text[from:], spelled) {
			add(place{path, line, from, from + len(spelled), false, n})
		}
		for _, f := range n.fields {
			if strings.HasPrefix(d.text[at(f.pos):], f.name) {
				add(place{joinPath(path, f.name), f.pos.Line, at(f.pos), at(f.pos) + len(f.name), true, f.val})
			}
			walk(f.val, joinPath(path, f.name), f.pos.Line)
		}
		for i, it := range n.items {
			walk(it, fmt.Sprintf("%s[%d]", path, i), it.pos.Line)
		}
	}
	for _, f := range root.fields {
		if f.name == "daqiri" || root.get("daqiri") == nil {
			walk(&node{kind: kindTable, pos: f.pos, fields: []field{f}}, "", f.pos.Line)
		}
	}
	return list
}

// refused replaces one place and checks that an error is reported on its line.
func refused(t *testing.T, d document, pl place, with, rule string) {
	t.Helper()
	text := d.text[:pl.from] + with + d.text[pl.to:]
	list := issues(t, d.name, text, Options{})
	for _, is := range list {
		if is.Pos.Line == pl.line && strings.Contains(is.Text, rule) {
			return
		}
	}
	t.Errorf("%s: %s:%d = %s is not refused with %q there: %v", d.name, pl.path, pl.line, with, rule, list)
}

func TestMutations(t *testing.T) {
	region := regexp.MustCompile(`(queues\[\d+\]\.memory_regions\[\d+\]|reorder_configs\[\d+\]\.memory_region)$`)
	for _, d := range documents(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, pl := range places(t, d) {
				switch {
				case pl.key:
					key := d.text[pl.from:pl.to]
					refused(t, d, pl, key+"q", fmt.Sprintf("unknown key; did you mean %q?", key))
				case region.MatchString(pl.path) && !strings.HasPrefix(d.name, "roce"):
					refused(t, d, pl, "Nowhere", `no memory region "Nowhere"`)
				case pl.node.tag == "int":
					refused(t, d, pl, "-5", "")
					refused(t, d, pl, "99999999999999999999", "99999999999999999999 is ")
					refused(t, d, pl, "[1]", "a list where")
					refused(t, d, pl, "<8>", "placeholder not filled")
				case pl.node.tag == "bool":
					refused(t, d, pl, "perhaps", "neither true nor false")
				}
			}
		})
	}
}

func TestBrokenGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "broken", "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d broken configurations, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			_, _, err := ParseText(filepath.Base(f), read(t, f), Options{})
			if err == nil {
				t.Fatal("no fault found")
			}
			golden(t, strings.TrimSuffix(f, ".yaml")+".golden", err.Error()+"\n")
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, path); got != want {
		t.Errorf("%s differs (go test -update rewrites it)\n--- want\n%s--- got\n%s", path, want, got)
	}
}
