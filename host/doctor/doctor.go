// Package doctor checks a machine, and a configuration on it, for causes of packet loss. Each row checks one concern and passes, fails or does
// not apply. It changes nothing, and needs root only to read what is restricted to root.
//
// It may import host/machine, bindings' neighbours in runtime (spec, session, task) and x/sys. The rows (rows_*.go) define what is checked, why
// it matters and how to fix it.
package doctor

import (
	"slices"
	"sync"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// State is the result of a row.
type State string

// Results of a row.
const (
	Pass    State = "pass"
	Fail    State = "fail"
	NotHere State = "not here" // does not apply to this machine or configuration
)

// Finding is one result of a row, for one object.
type Finding struct {
	Row     string `json:"row"`
	Of      string `json:"of,omitempty"` // object: eth1, node 0, queue rx
	State   State  `json:"state"`
	Found   string `json:"found"`
	Why     string `json:"why"`
	Command string `json:"command,omitempty"` // fix of a failure: a shell command, or a description
}

// A row checks one concern.
type row struct {
	name string
	why  string
	// engines are those whose interfaces require the row; it is skipped for a configuration without them. Empty: any.
	engines []string
	look    func(x *exam)
}

// exam is the state of a running row.
type exam struct {
	m     *machine.Machine
	cfg   *spec.Config // nil: none was given
	dirs  []string     // output folders
	row   row
	found []Finding
	// gpuPlan queries the GPU driver; nil: not available.
	gpuPlan func() (*preflight.GPUPlan, error)
}

// Options specify what is examined.
type Options struct {
	Machine *machine.Machine
	Config  *spec.Config // nil: only the machine
	Dirs    []string     // output folders of writers
	// GPUs queries the driver for GPUs; nil: not queried.
	GPUs func() (*preflight.GPUPlan, error)
}

// rows returns all rows in the order of the report.
func rows() []row {
	return slices.Concat(configRows, cpuRows, memoryRows, netRows, busRows, gpuRows, fileRows)
}

// Examine runs every row and returns the findings.
func Examine(o Options) []Finding { return examine(o, rows()) }

// GPUs runs the rows about GPUs and the folders that their data are written to.
func GPUs(o Options) []Finding { return examine(o, gpuRows) }

func examine(o Options, rows []row) []Finding {
	var all []Finding
	var ask func() (*preflight.GPUPlan, error)
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

// serves reports whether one of these engines serves an interface of the configuration; true without a configuration.
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

// Failed returns the number of failed findings.
func Failed(all []Finding) (n int) {
	for _, f := range all {
		if f.State == Fail {
			n++
		}
	}
	return n
}
