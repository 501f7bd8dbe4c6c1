package manual

import (
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// TestExamples: what the page shows can be written.
func TestExamples(t *testing.T) {
	for _, e := range examples {
		if _, err := expr.Parse(e); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}

// TestTable: short cells stand beside each other, sentences below each other, and code has no marks on a terminal.
func TestTable(t *testing.T) {
	long := strings.Repeat("word ", 12)
	topic := Topic{Name: "x", Short: "a page", Parts: func() []Part {
		return []Part{
			{Table: &Table{Columns: []string{"name", "unit", "text"}, Rows: [][]string{{"`a`", "ns", "one"}, {"`bcd`", "packets", "two"}}}},
			{Table: &Table{Columns: []string{"name", "text", "more"}, Rows: [][]string{{"`a|b`", long + "`end`", "more"}}}}}
	}}
	want := "  a    ns       one\n  bcd  packets  two\n\n  a|b  " + long + "end\n       more\n"
	if got := topic.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if md := topic.Markdown(); !strings.HasPrefix(md, "# A page\n") || !strings.Contains(md, "| `a\\|b` | "+long+"`end` | more |\n") {
		t.Error(md)
	}
}
