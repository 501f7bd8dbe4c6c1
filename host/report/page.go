package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/live"
	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/session/words"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// view is the content of the page.
type view struct {
	Title, Head string
	Errors      []string // of the script, writers, devices and queues
	Live        bool
	Sessions    []sessionView
	Body        template.HTML // all of this except Live, set after it is rendered
}

type sessionView struct {
	Name, Time    string
	Thresholds    []thresholdView
	Limits, Notes []string
	Files         []string
	Lines         []lineView
	Drops         []dropView
	Sources       []stats.Source
	Charts        []template.HTML
}

type (
	thresholdView struct {
		Text   string
		Passed bool
	}
	lineView struct {
		Title                  string
		In, Out, Held, Dropped string
		Lost                   bool
	}
	dropView struct{ Name, N, Why string }
)

// HTML returns a self-contained page of a run.
func (r *Recorder) HTML(report *summary.Report) ([]byte, error) {
	_, whole, err := r.render(report, false)
	return whole, err
}

// render returns the page, and its body alone, with the charts drawn once for both.
func (r *Recorder) render(report *summary.Report, live bool) (body, whole []byte, err error) {
	v := view{Title: "daqiri-run", Head: strings.TrimSpace(report.Head()), Live: live}
	if report.Script != "" {
		v.Title += " " + report.Script
	}
	v.Errors = errorsOf(report)
	var faults []error
	opened := r.process.Sessions()
	for i := range report.Sessions {
		s := &report.Sessions[i]
		if !s.Started {
			continue
		}
		var h *history
		if i < len(opened) {
			h = r.history(opened[i])
		}
		shown, err := sessionOf(s, h)
		v.Sessions, faults = append(v.Sessions, shown), append(faults, err)
	}
	var b, w bytes.Buffer
	faults = append(faults, page.ExecuteTemplate(&b, "body", v))
	v.Body = template.HTML(b.String())
	faults = append(faults, page.Execute(&w, v))
	return b.Bytes(), w.Bytes(), errors.Join(faults...)
}

// Show renders the current run and sends it to all viewers.
func (r *Recorder) Show(s *live.Server, report *summary.Report) error {
	body, whole, err := r.render(report, true)
	if err != nil {
		return err
	}
	text, err := json.Marshal(string(body))
	if err == nil {
		s.Send(whole, text)
	}
	return err
}

// errorsOf lists the errors of a run, as in the summary or on stderr.
func errorsOf(report *summary.Report) []string {
	list := slices.Clone(report.Errors)
	for i := range report.Sessions {
		s := &report.Sessions[i]
		if s.Error != "" {
			list = append(list, s.Error)
		}
		for _, name := range s.Abandoned {
			list = append(list, "stage "+name+" did not end")
		}
		for k := range s.Ledger.QueueErrors {
			list = append(list, s.Ledger.QueueErrors[k].String())
		}
	}
	return list
}

// history returns the recorded history of a session. A session that the script closed has been replaced by another value since.
func (r *Recorder) history(o *bindings.RunningSession) *history {
	if h := r.of[o]; h != nil {
		return h
	}
	for _, k := range r.order {
		if k.Name() == o.Name() && k.Closed() {
			return r.of[k]
		}
	}
	return nil
}

// sessionOf returns the page's view of a session; h is nil if nothing was recorded.
func sessionOf(s *summary.Session, h *history) (sessionView, error) {
	v := sessionView{Name: s.Name, Time: fmt.Sprintf("ran for %.4g s", s.RunS), Limits: s.Limits, Notes: s.Notes, Files: s.Files}
	if s.Reason != "" {
		v.Time += " (" + s.Reason + ")"
	}
	for _, t := range s.Thresholds {
		if t.Passed {
			v.Thresholds = append(v.Thresholds, thresholdView{t.String(), true})
		}
	}
	for _, text := range s.Violated {
		v.Thresholds = append(v.Thresholds, thresholdView{text, false})
	}
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		shown := lineView{Title: l.Title(), In: grouped(l.In), Out: grouped(l.Out), Held: grouped(l.Held), Dropped: grouped(l.Dropped.Sum())}
		for _, d := range l.Dropped {
			row := words.ReasonNamed(d.Name)
			shown.Lost = shown.Lost || d.N > 0 && !row.Wanted
			if d.N > 0 {
				v.Drops = append(v.Drops, dropView{l.Title() + "." + d.Name, grouped(d.N), row.Text})
			}
		}
		v.Lines = append(v.Lines, shown)
		v.Sources = append(v.Sources, l.Sources...)
	}
	var err error
	v.Charts, err = chartsOf(s, h)
	return v, err
}

// chartsOf draws the charts with data: rates and losses over time, sources, histograms.
func chartsOf(s *summary.Session, h *history) (all []template.HTML, err error) {
	add := func(c template.HTML, fault error) {
		if c != "" {
			all = append(all, c)
		}
		err = errors.Join(err, fault)
	}
	if h != nil {
		queues := slices.DeleteFunc(slices.Clone(h.lines), func(t *track) bool { return t.kind != stats.Rx && t.kind != stats.Tx })
		add(line("Packet rate (packets/s)", h, queues, func(t *track) []float64 { return t.packets }))
		add(line("Data rate (bit/s)", h, queues, func(t *track) []float64 { return t.bits }))
		add(line("Dropped packets (packets/s)", h, h.lines, func(t *track) []float64 { return t.dropped }))
	}
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if worst, _ := l.Sources.Worst(mostBars); len(worst) > 0 {
			var values []float64
			var names []string
			for _, w := range worst {
				values, names = append(values, float64(w.Missing)), append(names, w.Name)
			}
			add(barChart("Missing packets of "+l.Title()+" by source (packets)", "Source", values, names))
		}
		for _, hist := range l.Histograms {
			add(bars(histogramTitle(hist)+" of "+l.Title(), hist))
		}
	}
	return all, err
}

// histogramTitle returns the name of a histogram as words.
func histogramTitle(h *stats.Histogram) string {
	words := strings.ReplaceAll(h.Name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// grouped formats a number with its digits in groups of three.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
