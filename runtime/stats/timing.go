package stats

// Timing says how a transmit queue kept to its pace; its histograms gap_error and time_error say more.
type Timing struct {
	WantedNS  uint64 `json:"wanted_ns"`            // what the pace gave the gaps between packets
	TookNS    uint64 `json:"took_ns"`              // what they took
	OverdueNS uint64 `json:"overdue_ns,omitempty"` // for so long a packet that is there should have left
}

// minus is what happened since o; overdue is never longer than seconds, the time between the two.
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

// share is the part of the pace that was achieved, from the first packet to the last; 1 when nothing was paced.
func (t *Timing) share() float64 {
	took := t.TookNS + t.OverdueNS
	if took == 0 {
		return 1
	}
	return float64(t.WantedNS) / float64(took)
}
