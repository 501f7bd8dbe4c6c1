package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-analyze/charts"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// TestChartTexts checks that names chosen by scripts are escaped in charts.
func TestChartTexts(t *testing.T) {
	const name = `<script>alert("x")</script>`
	h := &history{seconds: []float64{1, 2}}
	lines, err := line(name, h, []*track{{title: name}}, func(*track) []float64 { return []float64{1, 2} })
	if err != nil {
		t.Fatal(err)
	}
	columns, err := barChart(name, name, []float64{1, 2}, []string{name, "b"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, svg := range map[string]template.HTML{"line": lines, "bars": columns} {
		if strings.Contains(string(svg), "<script") || !strings.Contains(string(svg), "&lt;script") {
			t.Errorf("%s: a name stands as it is:\n%s", kind, svg)
		}
	}
}

var svgText = regexp.MustCompile(`<text x="(-?\d+)" y="(-?\d+)"[^>]*>([^<]*)</text>`)

// TestLabels checks that labels of the horizontal axis do not overlap and are inside of the chart, however many there are.
func TestLabels(t *testing.T) {
	for _, n := range []int{2, 7, 13, 24, 60, 479} {
		h := &history{seconds: make([]float64, n)}
		values := make([]float64, n)
		for i := range h.seconds {
			h.seconds[i], values[i] = 1000.5*float64(i+1), float64(i)
		}
		svg, err := line("Packet rate (packets/s)", h, []*track{{title: "a"}}, func(*track) []float64 { return values })
		checkLabels(t, fmt.Sprintf("line of %d points", n), svg, err)
	}
	for n := 1; n <= mostBars; n++ {
		x := &stats.Histogram{Name: "run_time", Unit: "ns"}
		for i := range n {
			x.Buckets = append(x.Buckets, stats.Bucket{Most: 1234 << i, N: uint64(i + 1)})
		}
		svg, err := bars("Run time of a", x)
		checkLabels(t, fmt.Sprintf("%d bars", n), svg, err)
	}
	x := &stats.Histogram{Name: "burst_size", Unit: "packets", Buckets: []stats.Bucket{{Most: 1, N: 1}}}
	if svg, err := bars(histogramTitle(x)+" of a", x); err != nil || !strings.Contains(string(svg), ">Burst size of a (packets)<") {
		t.Errorf("%v\n%s", err, svg)
	}
}

func checkLabels(t *testing.T, what string, svg template.HTML, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	type label struct {
		x, end int
		text   string
	}
	rows := map[int][]label{}
	p := charts.NewPainter(charts.PainterOptions{Width: chartWidth, Height: chartHeight})
	for _, m := range svgText.FindAllStringSubmatch(string(svg), -1) {
		x, _ := strconv.Atoi(m[1])
		y, _ := strconv.Atoi(m[2])
		if text := html.UnescapeString(m[3]); text != "" {
			w := widest(p, []string{text})
			if w < 4*len([]rune(text)) {
				t.Fatalf("%q is %d pixels wide", text, w)
			}
			rows[y] = append(rows[y], label{x, x + w, text})
		}
	}
	if len(rows) < 4 {
		t.Fatalf("%s: labels in %d rows:\n%s", what, len(rows), svg)
	}
	for _, row := range rows {
		slices.SortFunc(row, func(a, b label) int { return cmp.Compare(a.x, b.x) })
		for i, l := range row {
			if i > 0 && l.x < row[i-1].end+2 {
				t.Errorf("%s: %q from %d on overlaps %q, which ends at %d", what, l.text, l.x, row[i-1].text, row[i-1].end)
			}
			if l.x < 0 || l.end > chartWidth {
				t.Errorf("%s: %q from %d to %d is outside of the chart", what, l.text, l.x, l.end)
			}
		}
	}
}
