package stats

// Timing holds the total pacing accuracy of a transmit queue; the histograms gap_error and time_error hold the distribution.
type Timing struct {
	WantedNS  uint64 `json:"wanted_ns"`            // requested total of the gaps between packets
	TookNS    uint64 `json:"took_ns"`              // actual total of the gaps
	OverdueNS uint64 `json:"overdue_ns,omitempty"` // delay so far of a packet that is ready but not sent
}

// minus returns the difference since o; overdue is limited to seconds, the time between the two.
func (t *Timing) minus(o *Timing, seconds float64) *Timing {
	if t == nil {
		return nil
	}
	if o == nil {
		o = &Timing{}
	}
	return &Timing{t.WantedNS - o.WantedNS, t.TookNS - o.TookNS, min(t.OverdueNS, uint64(seconds*1e9))}
}

func (t *Timing) plus(o *Timing) *Timing {
	if t == nil || o == nil {
		if t == nil {
			return o
		}
		return t
	}
	return &Timing{t.WantedNS + o.WantedNS, t.TookNS + o.TookNS, t.OverdueNS + o.OverdueNS}
}

// share returns the achieved fraction of the pace, from the first packet to the last; 1 without paced packets.
func (t *Timing) share() float64 {
	took := t.TookNS + t.OverdueNS
	if took == 0 {
		return 1
	}
	return float64(t.WantedNS) / float64(took)
}
