package stats

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Threshold is a condition on figures and metrics that a run must meet.
type Threshold struct {
	Expr  string
	After float64 // seconds after the start before which a running session is not checked
	Abort bool    // a violation stops a running session

	cond *expr.Expr
}

// Result is the outcome of a threshold for a ledger.
type Result struct {
	Expr    string             `json:"expr"`
	Passed  bool               `json:"passed"`
	Values  map[string]float64 `json:"values"`            // values of its names
	Missing []string           `json:"missing,omitempty"` // names without a value, which make it fail
}

// String returns the outcome with the values that led to it.
func (r Result) String() string {
	word := "passed"
	if !r.Passed {
		word = "violated"
	}
	var facts []string
	for name, v := range r.Values {
		facts = append(facts, fmt.Sprintf("%s = %.6g", name, v))
	}
	slices.Sort(facts)
	facts = append(facts, r.Missing...)
	if len(facts) == 0 {
		return r.Expr + ": " + word
	}
	return fmt.Sprintf("%s: %s (%s)", r.Expr, word, strings.Join(facts, ", "))
}

// Thresholds holds the conditions of one session. It is safe for concurrent use.
type Thresholds struct {
	mu   sync.Mutex
	list []Threshold
}

// Add parses and adds a condition such as "rx_port.rx.dropped == 0". Its names need not have values yet.
func (ts *Thresholds) Add(t Threshold) error {
	cond, err := expr.Parse(t.Expr)
	switch {
	case err != nil:
		return fmt.Errorf("threshold %q: %w", t.Expr, err)
	case !cond.IsCondition():
		return fmt.Errorf("threshold %q: it is a number: compare it with something", t.Expr)
	case !(t.After >= 0):
		return fmt.Errorf("threshold %q: after: %g is not 0 or more seconds", t.Expr, t.After)
	}
	t.cond = cond
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.list = append(ts.list, t)
	return nil
}

// Len returns the number of thresholds.
func (ts *Thresholds) Len() int { return len(ts.all()) }

func (ts *Thresholds) all() []Threshold {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.list
}

// noErrors applies to every run, unless a threshold of the script names the same figure.
var noErrors = func() Threshold {
	cond, err := expr.Parse("errors == 0")
	if err != nil {
		panic(err)
	}
	return Threshold{Expr: "errors == 0", cond: cond}
}()

// Check evaluates all thresholds for the ledger of a whole run, in the order of Add, followed by "errors == 0" if that is violated and no threshold
// names errors.
func (ts *Thresholds) Check(l *Ledger) []Result {
	var out []Result
	own := false
	for _, t := range ts.all() {
		out = append(out, t.check(l))
		own = own || slices.ContainsFunc(t.cond.Names(), func(n expr.Name) bool { return n.Text == "errors" })
	}
	if r := noErrors.check(l); !own && !r.Passed {
		out = append(out, r)
	}
	return out
}

// Abort returns the first violated threshold with Abort set, given the ledger so far. A threshold with a name without a value is skipped.
func (ts *Thresholds) Abort(l *Ledger) (Result, bool) {
	for _, t := range ts.all() {
		if !t.Abort || l.Seconds() < t.After {
			continue
		}
		if r := t.check(l); !r.Passed && len(r.Missing) == 0 {
			return r, true
		}
	}
	return Result{}, false
}

// Aborts reports whether any threshold can stop a running session.
func (ts *Thresholds) Aborts() bool {
	return slices.ContainsFunc(ts.all(), func(t Threshold) bool { return t.Abort })
}

func (t *Threshold) check(l *Ledger) Result {
	r := Result{Expr: t.Expr, Values: map[string]float64{}}
	for _, n := range t.cond.Names() {
		if v, ok := l.Lookup(n.Text); ok {
			r.Values[n.Text] = v
			continue
		}
		missing := n.Text + " has no value"
		if OfSome(n.Text) {
			missing += ": nothing came of it"
		} else if near := suggest.Nearest(n.Text, l.Names()); near != "" {
			missing += fmt.Sprintf("; did you mean %q?", near)
		}
		r.Missing = append(r.Missing, missing)
	}
	v := t.cond.Eval(l.Lookup)
	r.Passed = v.Known && v.True
	return r
}
