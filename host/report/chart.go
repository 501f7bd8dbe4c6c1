package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/go-analyze/charts"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

const (
	chartWidth, chartHeight = 960, 300
	mostSeries              = 8 // maximum number of lines in a chart: the largest
)

// line draws series over time; "" if all values are 0.
func line(title, unit string, h *history, tracks []*track, of func(*track) []float64) (template.HTML, error) {
	var names []string
	var values [][]float64
	for _, t := range tracks {
		v := of(t)
		if len(names) == mostSeries || largest(v) == 0 {
			continue
		}
		names, values = append(names, t.title), append(values, v)
	}
	if len(values) == 0 || len(h.seconds) < 2 {
		return "", nil
	}
	opt := charts.NewLineChartOptionWithData(values)
	opt.Title.Text = title
	opt.Legend.SeriesNames = names
	opt.Symbol.Shape = charts.SymbolNone
	opt.LineStrokeWidth = 1.5
	opt.ValueFormatter = func(v float64) string { return short(v) + " " + unit }
	opt.YAxis[0].Min = charts.Ptr(0.0)
	for i, s := range h.seconds {
		opt.XAxis.Labels[i] = short(s) + " s"
	}
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	return drawn(p, p.LineChart(opt))
}

// bars draws a histogram as bars.
func bars(title string, h *stats.Histogram) (template.HTML, error) {
	if h.N() == 0 {
		return "", nil
	}
	values, labels := []float64{}, []string{}
	for _, b := range merged(h.Buckets) {
		values = append(values, float64(b.N))
		labels = append(labels, size(b.Most, h.Unit))
	}
	return barChart(title, values, labels)
}

func barChart(title string, values []float64, labels []string) (template.HTML, error) {
	opt := charts.NewBarChartOptionWithData([][]float64{values})
	opt.Title.Text = title
	opt.Legend.Show = charts.Ptr(false)
	opt.CategoryAxis.Labels = labels
	opt.ValueAxis[0].Min = charts.Ptr(0.0)
	opt.ValueFormatter = short
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	return drawn(p, p.BarChart(opt))
}

func drawn(p *charts.Painter, err error) (template.HTML, error) {
	if err != nil {
		return "", err
	}
	svg, err := p.Bytes()
	return template.HTML(svg), err // the library escapes texts: TestChartTexts
}

// mostBars is the maximum number of bars of a histogram.
const mostBars = 24

// merged joins neighboring buckets until there are at most mostBars.
func merged(list []stats.Bucket) []stats.Bucket {
	for len(list) > mostBars {
		var out []stats.Bucket
		for i := 0; i < len(list); i += 2 {
			b := list[i]
			if i+1 < len(list) {
				b = stats.Bucket{Most: list[i+1].Most, N: b.N + list[i+1].N}
			}
			out = append(out, b)
		}
		list = out
	}
	return list
}

// size formats the upper bound of a bucket.
func size(v uint64, unit string) string {
	if unit == "ns" {
		for _, u := range []struct {
			ns   float64
			name string
		}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
			if float64(v) >= u.ns {
				return short(float64(v)/u.ns) + " " + u.name
			}
		}
		return fmt.Sprintf("%d ns", v)
	}
	return short(float64(v))
}

// short formats a number with three digits and a decimal prefix.
func short(v float64) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if v < 1000 {
			break
		}
		v, prefix = v/1000, p
	}
	return strings.TrimSpace(fmt.Sprintf("%.3g %s", v, prefix))
}

func largest(list []float64) (most float64) {
	for _, v := range list {
		most = max(most, v)
	}
	return most
}
