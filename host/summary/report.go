package summary

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Schema is the version of the JSON form.
const Schema = 1

// Report is the result of a run. Its JSON form is that of --summary-json.
type Report struct {
	Schema    int       `json:"schema"`
	Version   string    `json:"version"`          // version of daqiri-run
	Script    string    `json:"script,omitempty"` // as given; empty at a prompt
	SHA256    string    `json:"script_sha256,omitempty"`
	ExitCode  int       `json:"exit_code"`
	Cause     string    `json:"cause"`            // exit code in one word
	Reason    string    `json:"reason,omitempty"` // what ended the run, if not the script
	Started   time.Time `json:"started"`          // wall clock
	ElapsedS  float64   `json:"elapsed_s"`        // wall clock
	Errors    []string  `json:"errors,omitempty"` // of the script and its tasks; sessions have their own
	Abandoned []string  `json:"abandoned,omitempty"`
	Died      bool      `json:"died,omitempty"` // the process was killed; these are its last figures
	Sessions  []Session `json:"sessions"`
}

// Session is one session of a run. Its times are on the session clock.
type Session struct {
	Name       string         `json:"name"`
	Started    bool           `json:"started"`
	RunS       float64        `json:"run_s"` // from start to stop
	Reason     string         `json:"reason,omitempty"`
	Thresholds []stats.Result `json:"thresholds"`
	Violated   []string       `json:"violated"` // violated thresholds, at the end or when they stopped the session
	Ledger     *stats.Ledger  `json:"ledger"`
	Imbalance  []string       `json:"imbalance"` // lines of the ledger that do not balance
	Files      []string       `json:"files"`
	Error      string         `json:"error,omitempty"`     // of the writers
	Abandoned  []string       `json:"abandoned,omitempty"` // stages that did not end
	Failed     []string       `json:"failed,omitempty"`    // stages whose device failed
	Limits     []string       `json:"limits"`              // what limited the run
	Notes      []string       `json:"notes"`               // what is hardware, software or copy, and why
}

// Collect builds a report of a process's finished sessions. Fields known only to the host are left empty.
func Collect(opened []*bindings.RunningSession) *Report {
	r := &Report{Schema: Schema, Sessions: []Session{}}
	for _, o := range opened {
		r.Sessions = append(r.Sessions, collect(o))
	}
	return r
}

func collect(o *bindings.RunningSession) Session {
	s := Session{Name: o.Name(), Started: o.Started(), RunS: o.RunTime(), Reason: o.Reason(), Ledger: o.Ledger(), Violated: o.Failed(),
		Files: o.Files(), Notes: o.Notes()}
	if s.Started {
		s.Thresholds = o.Thresholds()
	}
	for _, bad := range s.Ledger.Balance() {
		s.Imbalance = append(s.Imbalance, bad.String())
	}
	if err := o.Err(); err != nil {
		s.Error = err.Error()
	}
	for _, e := range o.DeviceErrors() {
		if e.Abandoned {
			s.Abandoned = append(s.Abandoned, e.Stage)
		} else {
			s.Failed = append(s.Failed, cmp.Or(e.Stage, e.Queue, e.Kernel))
		}
	}
	s.Limits = limits(s.Ledger.Lines, s.RunS, o.Endless())
	return s
}

// JSON returns the report as indented JSON with a final newline. Lists are never null.
func (r *Report) JSON() ([]byte, error) {
	whole := *r
	whole.Sessions = make([]Session, len(r.Sessions))
	for i, s := range r.Sessions {
		if s.Thresholds == nil {
			s.Thresholds = []stats.Result{}
		}
		for _, list := range []*[]string{&s.Violated, &s.Imbalance, &s.Files, &s.Limits, &s.Notes} {
			if *list == nil {
				*list = []string{}
			}
		}
		whole.Sessions[i] = s
	}
	data, err := json.MarshalIndent(whole, "", "  ")
	return append(data, '\n'), err
}

// Violated reports whether a threshold was violated.
func (r *Report) Violated() bool {
	for _, s := range r.Sessions {
		if len(s.Violated) > 0 {
			return true
		}
	}
	return false
}

// DevicesFailed reports whether a stage did not end or its device failed.
func (r *Report) DevicesFailed() bool {
	for _, s := range r.Sessions {
		if len(s.Abandoned)+len(s.Failed) > 0 {
			return true
		}
	}
	return false
}

// StorageErrors lists the writers' errors by session.
func (r *Report) StorageErrors() []string {
	var found []string
	for _, s := range r.Sessions {
		if s.Error != "" {
			found = append(found, s.Error)
		}
	}
	return found
}

// Ran reports whether any session was started.
func (r *Report) Ran() bool {
	for _, s := range r.Sessions {
		if s.Started {
			return true
		}
	}
	return false
}

// Balanced reports whether every ledger balances.
func (r *Report) Balanced() bool {
	for _, s := range r.Sessions {
		if len(s.Imbalance) > 0 {
			return false
		}
	}
	return true
}
