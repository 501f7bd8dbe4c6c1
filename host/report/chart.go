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

	plotWidth  = chartWidth - 110 // at least
	labelSize  = 12               // of the font of labels
	labelSpace = 12               // between labels
)

// line draws series over time; "" if all values are 0.
func line(title string, h *history, tracks []*track, of func(*track) []float64) (template.HTML, error) {
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
	opt.ValueFormatter = short
	opt.YAxis[0].Min = charts.Ptr(0.0)
	opt.XAxis.Title = "Time (s)"
	for i, s := range h.seconds {
		opt.XAxis.Labels[i] = short(s)
	}
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	// The library moves the last label to the left by up to its width.
	opt.XAxis.LabelCount = max(2, plotWidth/(2*widest(p, opt.XAxis.Labels)+labelSpace))
	return drawn(p, p.LineChart(opt))
}

// widest returns the width of the widest label in pixels.
func widest(p *charts.Painter, labels []string) (most int) {
	for _, l := range labels {
		most = max(most, p.MeasureText(l, 0, charts.FontStyle{FontSize: labelSize, FontColor: charts.ColorBlack}).Width())
	}
	return most
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
	if h.Unit != "ns" { // labels of times have units
		title += " (" + h.Unit + ")"
	}
	return barChart(title, "Upper bound", values, labels)
}

func barChart(title, axis string, values []float64, labels []string) (template.HTML, error) {
	opt := charts.NewBarChartOptionWithData([][]float64{values})
	opt.Title.Text = title
	opt.Legend.Show = charts.Ptr(false)
	opt.CategoryAxis.Title = axis
	opt.ValueAxis[0].Min = charts.Ptr(0.0)
	opt.ValueFormatter = short
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	opt.CategoryAxis.Labels = spaced(labels, plotWidth/len(labels), widest(p, labels))
	opt.CategoryAxis.LabelCount = len(labels)
	opt.CategoryAxis.BoundaryGap = charts.Ptr(true) // each label is below its bar
	return drawn(p, p.BarChart(opt))
}

// spaced returns the labels of bars of so many pixels, with those left empty that labels of the greatest width would overlap.
func spaced(labels []string, each, width int) []string {
	out, step := make([]string, len(labels)), (width+labelSpace+each-1)/each
	for i := 0; i < len(labels); i += step {
		out[i] = labels[i]
	}
	return out
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
