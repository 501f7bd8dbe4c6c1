package session

import (
	"github.com/daqiri/daqiri-run/runtime/stats"

	"github.com/daqiri/daqiri-run/runtime/session/account"
)

// Ledger returns all accounts of the session; after Close, their final state. It may be called from any goroutine.
func (s *Session) Ledger() *stats.Ledger {
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.last != nil {
		return s.last
	}
	return s.snapshot()
}

func (s *Session) snapshot() *stats.Ledger {
	l := &stats.Ledger{
		Clock:   "real",
		StartNS: s.startNS,
		EndNS:   s.native.Now(),
		Metrics: s.metrics.All(),
		Process: stats.ReadProcess(s.startRSS),
	}
	if from := s.movedNS.Load(); from != 0 {
		l.StartNS = from
	}
	if to := s.quiescedNS.Load(); to != 0 {
		l.EndNS = to
	}
	if s.Virtual() {
		l.Clock = "virtual"
	}
	l.Lines = account.Lines(s.native, account.Names{
		Interface: func(i int) string { return s.ifaces[i].Name() },
		Flow:      s.flowName,
		Source:    s.sourceText,
	})
	s.details(l.Lines)
	l.QueueErrors = account.Errors(s.native)
	return l
}

// flowName returns the name of a flow, or "" if it is unknown.
func (s *Session) flowName(iface int, id uint32) string {
	name, _ := s.ifaces[iface].titles.Load(id)
	title, _ := name.(string)
	return title
}

// sourceText returns the formatter of the sources of a reorder stage, or nil.
func (s *Session) sourceText(stage string) func(uint64) string {
	f, _ := s.sourceTexts.Load(stage)
	text, _ := f.(func(uint64) string)
	return text
}

// details sets what the engine does not know of the lines.
func (s *Session) details(lines []stats.Line) {
	for n := range lines {
		x := &lines[n]
		if x.OfQueue() {
			s.place(x)
		}
		if r, ok := s.handled.Load(x.Name); ok && x.Kind == stats.Tap {
			h := x.Histograms.Get("handler_time")
			h.Buckets, h.Sum = r.(*stats.Recorder).Read()
		}
		if _, ok := s.stores.Load(x.Name); ok && x.Kind == stats.Writer {
			x.Store = true
		}
	}
}

// place sets the engine and the port id of a queue's line, and whether the queue is unread.
func (s *Session) place(x *stats.Line) {
	for k, i := range s.ifaces {
		if x.Name != i.Name() {
			continue
		}
		x.Engine, x.PortID = i.Engine(), k
		for _, q := range i.RxQueues() {
			if x.Kind == stats.Rx && q.ID() == x.QueueID {
				x.Unread = q.unread()
			}
		}
	}
}

// unread reports whether no pipe has read the queue so far. A queue without regions holds no packets: its receivers start operations on its
// connections.
func (q *Queue) unread() bool {
	return !q.read.Load() && len(q.plans) == 0 && len(q.spec.MemoryRegions) > 0
}
