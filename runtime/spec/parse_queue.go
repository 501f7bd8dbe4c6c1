package spec

import (
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

func (p *parser) queues(o *object, tx, roce bool) []*Queue {
	var list []*Queue
	for _, v := range o.list("queues") {
		list = append(list, p.queue(v, tx, roce))
	}
	if o.empty("queues") {
		p.errorf(o.Key("queues"), "at least one queue is needed")
	}
	return list
}

func (p *parser) queue(v value, tx, roce bool) *Queue {
	o := p.object(v)
	q := &Queue{Source: o.Source, CPUCore: -1}
	q.PollMode = o.choice("poll_mode")
	if q.Direct() {
		o.refuse("has no place with poll_mode direct: the asking thread polls", "cpu_core")
		o.refuse("has no place with poll_mode direct: a poll returns what is there", "timeout_us")
		o.waive("batch_size")
	} else {
		if tx {
			o.effectless("timeout_us")
		}
		q.DefaultTimeout = !tx && !o.Has("timeout_us")
	}
	o.fill(q)
	p.queueRegions(o, q, roce)
	if tx {
		p.txQueue(o, q)
	} else {
		o.refuse("belongs to a transmit queue", "offloads", "pacing_mbps", "inline_data", "gpunetio")
	}
	o.end()
	return q
}

// noDefaultTimeouts disables the default timeout, so that endpoints deliver immediately unless the configuration has a timeout.
func (rx *RX) noDefaultTimeouts() {
	for _, q := range rx.Queues {
		if q.DefaultTimeout {
			q.TimeoutUS = 0
		}
	}
}

func (p *parser) queueRegions(o *object, q *Queue, roce bool) {
	if roce {
		o.waive("memory_regions")
	}
	items := o.list("memory_regions")
	for _, v := range items {
		if s, ok := p.text(v); ok {
			q.MemoryRegions = append(q.MemoryRegions, s)
			q.regionAt = append(q.regionAt, v.Source)
		}
	}
	switch {
	case roce && len(items) == 0:
	case o.empty("memory_regions"):
		p.errorf(o.Key("memory_regions"), "at least one region is needed")
	case len(items) > schema.MaxSegments:
		p.errorf(o.Key("memory_regions"), "%d regions, but a packet has at most %d segments", len(items), schema.MaxSegments)
	}
}

func (p *parser) txQueue(o *object, q *Queue) {
	o.effectless("inline_data")
	if g := o.child("gpunetio"); g.ok() {
		q.TxKernel = g.choice("tx_kernel")
		g.end()
	}
}
