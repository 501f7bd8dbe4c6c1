package manual

import (
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// TestExamples checks that the conditions shown on the page are valid.
func TestExamples(t *testing.T) {
	for _, e := range examples {
		if _, err := expr.Parse(e); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}

// TestTable checks the text layout: short cells in columns, sentences on separate lines, no code marks.
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
