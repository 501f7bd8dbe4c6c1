package spec

import (
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// ParseFlows parses receive flows from decoded values (a list, as converted from a Lua table) with the keys and checks of rx.flows. Names are
// optional and ids are not allowed: the session assigns them. Errors are an *Errors; paths start at flows[0].
func ParseFlows(v any) ([]*Flow, error) { return parseFlows(v, false) }

// ParseTxFlows parses transmit flows in the same way, with the keys and checks of tx.flows.
func ParseTxFlows(v any) ([]*Flow, error) { return parseFlows(v, true) }

func parseFlows(v any, tx bool) ([]*Flow, error) {
	p, key := &parser{}, schema.RXSection.Key("flows")
	if tx {
		key = schema.TXSection.Key("flows")
	}
	at := Source{Pos: Pos{File: "table"}, Path: "flows"}
	n := p.fromValue(v, at, 0)
	var flows []*Flow
	switch n.kind {
	case kindList:
		for i, it := range n.items {
			flows = append(flows, p.dynamicFlow(value{Source{Pos: at.Pos, Path: at.index(i)}, it, key}, tx))
		}
	case kindEmpty, kindBroken:
	default:
		p.errorf(at, "%s where a list of flows is expected", n.describe())
	}
	return flows, p.err()
}

// ParseMatch parses a match from decoded values with the keys and checks of rx.flows[].match. Errors are an *Errors; paths start at match.
func ParseMatch(v any) (*Match, error) {
	p := &parser{}
	at := Source{Pos: Pos{File: "table"}, Path: "match"}
	var m Match
	if o := p.object(value{at, p.fromValue(v, at, 0), schema.RXFlowSection.Key("match")}); o.ok() {
		m = p.match(o, false)
	}
	return &m, p.err()
}

// ParseRxQueue parses a receive queue from decoded values with the keys and checks of rx.queues[]. Errors are an *Errors; paths start at queue.
func ParseRxQueue(v any) (*Queue, error) { return parseQueue(v, schema.RXSection, false) }

// ParseTxQueue parses a transmit queue in the same way, with the keys and checks of tx.queues[].
func ParseTxQueue(v any) (*Queue, error) { return parseQueue(v, schema.TXSection, true) }

func parseQueue(v any, s *schema.Section, tx bool) (*Queue, error) {
	p := &parser{}
	at := Source{Pos: Pos{File: "table"}, Path: "queue"}
	q := p.queue(value{at, p.fromValue(v, at, 0), s.Key("queues")}, tx, false)
	return q, p.err()
}

// ParseRegion parses a memory region from decoded values with the keys and checks of memory_regions[]. Errors are an *Errors; paths start at
// region.
func ParseRegion(v any) (*MemoryRegion, error) {
	p := &parser{}
	at := Source{Pos: Pos{File: "table"}, Path: "region"}
	r := p.region(value{at, p.fromValue(v, at, 0), schema.ConfigSection.Key("memory_regions")})
	return r, p.err()
}

func (p *parser) dynamicFlow(v value, tx bool) *Flow {
	o := p.object(v)
	f := &Flow{Source: o.Source}
	o.waive("name")
	f.Name = o.name("name")
	o.refuse("the session gives dynamic flows their ids", "id")
	p.flowActions(o, f, tx)
	if m := o.child("match"); m.ok() {
		f.Match = p.match(m, tx)
	}
	o.end()
	return f
}

func (p *parser) err() error {
	if len(p.issues) == 0 {
		return nil
	}
	sortIssues(p.issues)
	return &Errors{p.issues}
}
