// Package doctor compares a machine, and a configuration on it, with what receiving without loss needs: a row for each concern, each of
// which passes, fails or has nothing to look at. It changes nothing, and needs root only for what nobody else may read.
//
// It may import host/machine, bindings' neighbours in runtime (spec, session, task) and x/sys. The rows (rows_*.go) are the one place that
// says what is looked at, why it matters and what mends it.
package doctor

import (
	"slices"
	"sync"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// State is how a row ended.
type State string

// The states.
const (
	Pass    State = "pass"
	Fail    State = "fail"
	NotHere State = "not here" // this machine or configuration has nothing that the row is about
)

// Finding is what a row found of one thing.
type Finding struct {
	Row     string `json:"row"`
	Of      string `json:"of,omitempty"` // the thing: eth1, node 0, queue rx
	State   State  `json:"state"`
	Found   string `json:"found"`
	Why     string `json:"why"`
	Command string `json:"command,omitempty"` // of a failure: what mends it, for a shell, or in words where no command can
}

// A row looks at one concern.
type row struct {
	name string
	why  string
	// engines are those whose interfaces need it: with a configuration that has none of these it is not looked at. Empty: any.
	engines []string
	look    func(x *exam)
}

// exam is a row at work.
type exam struct {
	m     *machine.Machine
	cfg   *spec.Config // nil: none was named
	dirs  []string     // folders of files
	row   row
	found []Finding
	// gpuPlan asks the driver of GPUs; nil: nobody does.
	gpuPlan func() (*session.GPUPlan, error)
}

// Options say what is examined.
type Options struct {
	Machine *machine.Machine
	Config  *spec.Config // nil: the machine alone
	Dirs    []string     // where files will be written
	// GPUs asks the driver what GPUs there are; nil: nobody does.
	GPUs func() (*session.GPUPlan, error)
}

// rows are all of them, in the order of the report.
func rows() []row {
	return slices.Concat(configRows, cpuRows, memoryRows, netRows, busRows, gpuRows, fileRows)
}

// Examine runs every row.
func Examine(o Options) []Finding { return examine(o, rows()) }

// GPUs runs the rows about GPUs, and what their data are written to.
func GPUs(o Options) []Finding { return examine(o, gpuRows) }

func examine(o Options, rows []row) []Finding {
	var all []Finding
	var ask func() (*session.GPUPlan, error)
	if o.GPUs != nil {
		ask = sync.OnceValues(o.GPUs)
	}
	for _, r := range rows {
		x := &exam{m: o.Machine, cfg: o.Config, dirs: o.Dirs, row: r, gpuPlan: ask}
		if needed := x.serves(r.engines); needed {
			r.look(x)
		} else {
			x.none("no interface of the configuration needs it")
		}
		all = append(all, x.found...)
	}
	return all
}

// serves says whether one of these engines serves an interface of the configuration; without one, any might.
func (x *exam) serves(engines []string) bool {
	if x.cfg == nil || len(engines) == 0 {
		return true
	}
	return slices.ContainsFunc(x.cfg.Interfaces, func(i *spec.Interface) bool { return slices.Contains(engines, i.EngineName()) })
}

func (x *exam) add(s State, of, found, command string) {
	x.found = append(x.found, Finding{Row: x.row.name, Of: of, State: s, Found: found, Why: x.row.why, Command: command})
}

func (x *exam) pass(of, found string)          { x.add(Pass, of, found, "") }
func (x *exam) fail(of, found, command string) { x.add(Fail, of, found, command) }
func (x *exam) none(found string)              { x.add(NotHere, "", found, "") }

// Failed counts what failed.
func Failed(all []Finding) (n int) {
	for _, f := range all {
		if f.State == Fail {
			n++
		}
	}
	return n
}
