package cli

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/host/manual"
	"github.com/daqiri/daqiri-run/runtime/session/words"
)

var update = flag.Bool("update", false, "write the documents instead of comparing them")

// TestDocuments checks that docs/ has the manual pages generated from the program's tables (make docs), and that docs/api has no other files.
func TestDocuments(t *testing.T) {
	made := map[string]string{"api/daqiri.d.lua": manual.Annotations()}
	for _, topic := range allTopics() {
		made[topic.Document()] = topic.Markdown()
	}
	for name, want := range made {
		if *update {
			if err := os.WriteFile("../../docs/"+name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want {
			t.Errorf("docs/%s is not what the tables make: make docs", name)
		}
	}
	attributes, err := os.ReadFile("../../.gitattributes")
	if err != nil {
		t.Fatal(err)
	}
	for name := range made {
		if !strings.HasPrefix(name, "api/") && !strings.Contains(string(attributes), "\ndocs/"+name+" ") {
			t.Errorf(".gitattributes does not mark docs/%s as generated", name)
		}
	}
	files, err := os.ReadDir("../../docs/api")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if made["api/"+f.Name()] == "" {
			t.Errorf("docs/api/%s: no table makes it", f.Name())
		}
	}
}

func allTopics() []manual.Topic { return slices.Concat(topics, manual.API()) }

// TestTopics checks that every table row has text in each column, and that the terminal output is not too wide.
func TestTopics(t *testing.T) {
	for _, topic := range allTopics() {
		for _, part := range topic.Parts() {
			if part.Table == nil {
				continue
			}
			for _, row := range part.Table.Rows {
				for k, cell := range row {
					if cell == "" || len(row) != len(part.Table.Columns) {
						t.Errorf("%s: %q lacks %s", topic.Name, row[0], part.Table.Columns[k])
					}
				}
			}
		}
		for line := range strings.Lines(topic.Text()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 110 {
				t.Errorf("%s: a line of %d characters: %s", topic.Name, n, line)
			}
		}
	}
}

// TestTopicsName checks that the pages mention each name known to the engine.
func TestTopicsName(t *testing.T) {
	pages := map[string][]words.Word{"fields": words.Fields(), "ledger": append(words.Extras(), words.Histograms()...)}
	for _, r := range words.Reasons() {
		pages["ledger"] = append(pages["ledger"], words.Word{Name: r.Name})
	}
	for _, topic := range topics {
		for _, w := range pages[topic.Name] {
			if !strings.Contains(topic.Markdown(), "| `"+w.Name+"` |") {
				t.Errorf("%s: no row of %s", topic.Name, w.Name)
			}
		}
		delete(pages, topic.Name)
	}
	if len(pages) > 0 {
		t.Errorf("no topic of %v", pages)
	}
}

// TestPage checks that an API page is found by its name alone, after a page of the same name.
func TestPage(t *testing.T) {
	if text := page("burst"); text == "" || text != page("api/burst.md") {
		t.Errorf("'doc burst' is %.60q", text)
	}
	if text := page("README"); text == "" || text == page("api/README") || page("nothing") != "" {
		t.Errorf("'doc README' is %.60q", text)
	}
}
