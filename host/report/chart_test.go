package report

import (
	"html/template"
	"strings"
	"testing"
)

// TestChartTexts checks that names chosen by scripts are escaped in charts.
func TestChartTexts(t *testing.T) {
	const name = `<script>alert("x")</script>`
	h := &history{seconds: []float64{1, 2}}
	lines, err := line(name, "pps", h, []*track{{title: name}}, func(*track) []float64 { return []float64{1, 2} })
	if err != nil {
		t.Fatal(err)
	}
	columns, err := barChart(name, []float64{1, 2}, []string{name, "b"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, svg := range map[string]template.HTML{"line": lines, "bars": columns} {
		if strings.Contains(string(svg), "<script") || !strings.Contains(string(svg), "&lt;script") {
			t.Errorf("%s: a name stands as it is:\n%s", kind, svg)
		}
	}
}
