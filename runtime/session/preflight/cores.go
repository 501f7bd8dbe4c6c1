package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Cores selects the processors of workers. The zero Cores uses cpu_core as configured.
type Cores struct {
	Auto bool  // any cores of this host
	List []int // replacements of the configured cores, in order of appearance
}

// ParseCores parses "auto", a list such as "2,4-7", or "" for the zero Cores.
func ParseCores(text string) (Cores, error) {
	switch text {
	case "":
		return Cores{}, nil
	case "auto":
		return Cores{Auto: true}, nil
	}
	var c Cores
	for _, part := range strings.Split(text, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(hi)
		}
		if err != nil || first < 0 || last < first || last-first >= 1024 {
			return Cores{}, fmt.Errorf("cores %q: %q is not a core or a range; write auto, or a list such as 2,4-7", text, part)
		}
		for n := first; n <= last; n++ {
			if slices.Contains(c.List, n) {
				return Cores{}, fmt.Errorf("cores %q: core %d is there twice", text, n)
			}
			c.List = append(c.List, n)
		}
	}
	return c, nil
}

// workerQueues returns the queues served by workers, in the order of the file.
func workerQueues(cfg *spec.Config) []*spec.Queue {
	var list []*spec.Queue
	for _, i := range cfg.Interfaces {
		for _, q := range i.Queues() {
			if !q.Direct() {
				list = append(list, q)
			}
		}
	}
	return list
}

// CorePlan is the core of each worker's queue, with notes for the report.
type CorePlan struct {
	of    map[*spec.Queue]int
	Notes []string

	want         Cores
	host         task.CPUs
	asked, given []int // distinct cores of the queues, in order, and the cores of this host that replace them
}

// Core returns the core that serves a queue: -1 for any, and false for a direct queue.
func (p CorePlan) Core(q *spec.Queue) (core int, ok bool) {
	core, ok = p.of[q]
	return core, ok
}

// Pinned returns the cores that workers are pinned to.
func (p CorePlan) Pinned() []int {
	var list []int
	for _, core := range p.of {
		if core >= 0 && !slices.Contains(list, core) {
			list = append(list, core)
		}
	}
	slices.Sort(list)
	return list
}

// PlanCores assigns cores to workers. Errors name the queue and its line.
func PlanCores(cfg *spec.Config, want Cores, host task.CPUs) (CorePlan, []spec.Issue) {
	queues := workerQueues(cfg)
	var asked []int // distinct cores of the file, in order
	for _, q := range queues {
		if q.CPUCore >= 0 && !slices.Contains(asked, q.CPUCore) {
			asked = append(asked, q.CPUCore)
		}
	}
	plan := CorePlan{of: map[*spec.Queue]int{}, want: want, host: host, asked: asked}
	given, issue := plan.choose(asked, want, host)
	plan.given = given
	if issue != nil {
		return plan, []spec.Issue{*issue}
	}
	var issues []spec.Issue
	for _, q := range queues {
		core := -1
		if q.CPUCore >= 0 {
			core = given[slices.Index(asked, q.CPUCore)]
		}
		if core >= 0 && !host.Has(core) {
			issues = append(issues, q.Key("cpu_core").Errorf(
				"core %d is not one that this process may use (%s); hint: --cores auto", core, FormatCores(host.List())))
		}
		plan.of[q] = core
	}
	return plan, issues
}

// choose maps each core of the file to one of this host.
func (p *CorePlan) choose(asked []int, want Cores, host task.CPUs) (given []int, issue *spec.Issue) {
	switch {
	case want.Auto:
		free := host.List()
		if len(free) > 1 {
			free = free[1:] // the first core is left to all other threads
		}
		if len(asked) > len(free) {
			p.Notes = append(p.Notes, fmt.Sprintf("cores: %d asked for, %d free: workers are not pinned", len(asked), len(free)))
			return slices.Repeat([]int{-1}, len(asked)), nil
		}
		return free, nil
	case want.List == nil:
		return asked, nil
	case len(asked) > len(want.List):
		return nil, &spec.Issue{Pos: spec.Pos{File: "--cores"}, Text: fmt.Sprintf(
			"%d cores given, and the configuration uses %d; hint: --cores auto", len(want.List), len(asked))}
	}
	return want.List, nil
}

// Later returns the core for a queue that is added after the open: that of the queues with the same cpu_core, or the next one that is free. An
// automatic plan without a free core pins no worker; a list without one is an error. Add records the choice.
func (p *CorePlan) Later(q *spec.Queue) (int, error) {
	if q.Direct() || q.CPUCore < 0 {
		return -1, nil
	}
	core, k := q.CPUCore, slices.Index(p.asked, q.CPUCore)
	if k < 0 {
		k = len(p.asked)
	}
	switch {
	case k < len(p.given):
		core = p.given[k]
	case p.want.Auto:
		return -1, nil
	case p.want.List != nil:
		return 0, fmt.Errorf("cpu_core %d is core number %d of the session, and --cores has %d; hint: --cores auto", core, k+1, len(p.given))
	}
	if core >= 0 && !p.host.Has(core) {
		return 0, fmt.Errorf("core %d is not one that this process may use (%s); hint: --cores auto", core, FormatCores(p.host.List()))
	}
	return core, nil
}

// Add records the core of a queue that was added.
func (p *CorePlan) Add(q *spec.Queue, core int) {
	if !q.Direct() && q.CPUCore >= 0 && !slices.Contains(p.asked, q.CPUCore) {
		p.asked = append(p.asked, q.CPUCore)
	}
	p.of[q] = core
}

// FormatCores formats 0,1,2,5 as "0-2,5".
func FormatCores(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if k > i {
			fmt.Fprintf(&b, "-%d", list[k])
		}
		i = k + 1
	}
	return b.String()
}
