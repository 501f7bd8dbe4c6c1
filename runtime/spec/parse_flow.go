package spec

import (
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

func (p *parser) flow(v value, tx bool) *Flow {
	o := p.object(v)
	f := &Flow{Source: o.Source}
	f.Name = o.name("name")
	f.ID = integer[uint32](o, "id")
	p.flowActions(o, f, tx)
	if m := o.child("match"); m.ok() {
		f.Match = p.match(m, tx)
	}
	o.end()
	return f
}

// flowActions reads action or actions.
func (p *parser) flowActions(o *object, f *Flow, tx bool) {
	single, hasAction := o.lookup("action")
	list := o.list("actions")
	switch {
	case hasAction && o.Has("actions"):
		p.errorf(o.Key("actions"), "stands beside action: keep one of them")
	case hasAction:
		f.Actions = []*Action{p.action(single, tx)}
		p.actionOrder(f, single.Source, tx)
	case o.Has("actions"):
		for _, a := range list {
			f.Actions = append(f.Actions, p.action(a, tx))
		}
		p.actionOrder(f, o.Key("actions"), tx)
	case o.ok():
		o.missing = append(o.missing, "action or actions")
	}
}

// actionOrder checks the combination of a flow's actions.
func (p *parser) actionOrder(f *Flow, at Source, tx bool) {
	n := len(f.Actions)
	switch {
	case n == 0:
		p.errorf(at, "at least one action is needed")
		return
	case n > schema.MaxActions:
		p.errorf(at, "%d actions, at most %d are possible", n, schema.MaxActions)
	}
	if tx {
		return
	}
	for i, a := range f.Actions {
		if i < n-1 && a.Type == schema.ActionQueue {
			p.errorf(a.Source, "queue must be the last action")
		}
	}
	if last := f.Actions[n-1]; last.Type != schema.ActionQueue && schema.RXActionSection.Variant(last.Type) != nil {
		p.errorf(at, "a receive flow must end with type: queue")
	}
}

func (p *parser) action(v value, tx bool) *Action {
	o := p.object(v)
	a := &Action{Source: o.Source}
	there, side := schema.TXActionSection, "a transmit"
	if tx {
		there, side = schema.RXActionSection, "a receive"
	}
	t, _, ok := o.find("type", schema.TypeChoice)
	if !ok {
		o.end()
		return a
	}
	if there.Variant(t.n.text) != nil {
		p.errorf(t.Source, "%s belongs to %s flow", t.n.text, side)
		return a
	}
	if a.Type = p.choice(t); a.Type == "" || o.sec.Variant(a.Type) == nil {
		return a
	}
	o.sec = o.sec.Variant(a.Type)
	switch a.Type {
	case schema.ActionQueue:
		p.queueIDs(o, a)
	case schema.ActionVLANPush:
		a.VLAN = p.vlan(o)
	case schema.ActionTunnelEncap, schema.ActionTunnelDecap:
		a.Tunnel = p.tunnel(o, a.Type == schema.ActionTunnelDecap)
	}
	o.end()
	return a
}

// queueIDs reads id or ids.
func (p *parser) queueIDs(o *object, a *Action) {
	single, ok := o.lookup("id")
	list := o.list("ids")
	if ok {
		list = append(list, single)
	}
	twice := p.unique("queue")
	for _, v := range list {
		if i, ok := p.integer(v); ok {
			twice.add(v.Source, i)
			a.Queues = append(a.Queues, int(i))
			a.queueAt = append(a.queueAt, v.Source)
		}
	}
	switch {
	case o.Has("id") && o.Has("ids"):
		p.errorf(o.Key("ids"), "stands beside id: keep one of them")
	case o.empty("ids"):
		p.errorf(o.Key("ids"), "at least one queue id is needed")
	case !o.Has("id") && !o.Has("ids"):
		o.missing = append(o.missing, "id or ids")
	}
}
