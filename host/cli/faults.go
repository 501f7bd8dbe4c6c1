package cli

// warn logs queue errors caused by the system, each kind once; the summary has the counts.
func (r *runner) warn() {
	for _, o := range r.program.Shared().Sessions() {
		if !o.Started() || o.Finished() {
			continue
		}
		for _, f := range o.Ledger().QueueErrors {
			key := o.Name() + " " + f.Line + " " + f.Text
			if r.warned[key] {
				continue
			}
			if r.warned == nil {
				r.warned = map[string]bool{}
			}
			r.warned[key] = true
			r.g.Logger.WithField("session", o.Name()).Warn(f.String())
		}
	}
}
