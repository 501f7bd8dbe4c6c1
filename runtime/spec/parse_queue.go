package spec

import (
	"slices"

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
	q := &Queue{Source: o.Source, CPUCore: -1, section: o.sec}
	q.PollMode = o.choice("poll_mode")
	if q.Direct() {
		o.refuse("has no place with poll_mode direct: the asking thread polls", "cpu_core")
		o.refuse("has no place with poll_mode direct: a poll returns what is there", "timeout_us")
		o.waive("batch_size")
	} else {
		q.DefaultTimeout = !tx && !o.Has("timeout_us")
	}
	o.fill(q)
	p.queueRegions(o, q, roce)
	if tx {
		p.txQueue(o, q)
	} else {
		o.refuse("belongs to a transmit queue", schema.TxQueueKeys()...)
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
	for _, name := range o.sec.Names() {
		if o.sec.Key(name).NoEffect != "" && !slices.Contains(o.refused, name) {
			o.effectless(name)
		}
	}
	if g := o.child("gpunetio"); g.ok() {
		q.TxKernel = g.choice("tx_kernel")
		g.end()
	}
}

// Numbers returns the values of the keys that the engine reads, by the names of their members in its configuration.
func (q *Queue) Numbers() map[string]int64 {
	numbers := map[string]int64{}
	for k, f := range fields(q, q.section) {
		switch {
		case !k.Engine:
		case k.Type == schema.TypeInteger:
			numbers[k.Name] = f.Int()
		default:
			for _, word := range f.Interface().([]string) {
				numbers[word] = 1
			}
		}
	}
	return numbers
}

// NotOnEndpoints returns an error for each key with a value that a queue of an endpoint can't have.
func (q *Queue) NotOnEndpoints() (issues []Issue) {
	for k, f := range fields(q, q.section) {
		if k.NotSocket != "" && !f.IsZero() {
			issues = append(issues, q.Key(k.Name).Errorf("%s", k.NotSocket))
		}
	}
	return issues
}
