package spec

const (
	max24 = 1<<24 - 1

	defaultTTL         = 64
	defaultVXLANPort   = 4789
	defaultGREProtocol = 0x0800 // IPv4
	defaultVLANType    = 0x8100
	maxActions         = 7
)

var (
	rxActions = []string{ActionQueue, ActionVLANPop, ActionTunnelDecap}
	txActions = []string{ActionVLANPush, ActionTunnelEncap}
)

func (p *parser) flow(v value, tx bool) *Flow {
	o := p.object(v)
	f := &Flow{Source: o.Source}
	f.Name = o.name("name")
	f.ID = integer[uint32](o, "id", 0, maxU32)
	p.flowActions(o, f, tx)
	if m := o.child("match", true); m.ok() {
		f.Match = p.match(m, tx)
	}
	o.end()
	return f
}

// flowActions reads action or actions.
func (p *parser) flowActions(o *object, f *Flow, tx bool) {
	single, hasAction := o.lookup("action")
	list := o.list("actions", true)
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

// actionOrder checks what the actions of a flow may be together.
func (p *parser) actionOrder(f *Flow, at Source, tx bool) {
	n := len(f.Actions)
	switch {
	case n == 0:
		p.errorf(at, "at least one action is needed")
		return
	case n > maxActions:
		p.errorf(at, "%d actions, at most %d are possible", n, maxActions)
	}
	if tx {
		return
	}
	for i, a := range f.Actions {
		if i < n-1 && a.Type == ActionQueue {
			p.errorf(a.Source, "queue must be the last action")
		}
	}
	if last := f.Actions[n-1]; last.Type != ActionQueue && contains(rxActions, last.Type) {
		p.errorf(at, "a receive flow must end with type: queue")
	}
}

func (p *parser) action(v value, tx bool) *Action {
	o := p.object(v)
	a := &Action{Source: o.Source}
	here, there, side := rxActions, txActions, "a transmit"
	if tx {
		here, there, side = txActions, rxActions, "a receive"
	}
	t, ok := o.required("type")
	if !ok {
		o.end()
		return a
	}
	if contains(there, t.n.text) {
		p.errorf(t.Source, "%s belongs to %s flow", t.n.text, side)
		return a
	}
	a.Type = p.choice(t, here)
	switch a.Type {
	case ActionQueue:
		p.queueIDs(o, a)
	case ActionVLANPush:
		a.VLAN = p.vlan(o)
	case ActionTunnelEncap, ActionTunnelDecap:
		a.Tunnel = p.tunnel(o, a.Type == ActionTunnelDecap)
	case ActionVLANPop:
	default:
		return a
	}
	o.end()
	return a
}

// queueIDs reads id or ids.
func (p *parser) queueIDs(o *object, a *Action) {
	single, ok := o.lookup("id")
	list := o.list("ids", true)
	if ok {
		list = append(list, single)
	}
	twice := p.unique("queue")
	for _, v := range list {
		if i, ok := p.integer(v, 0, maxU16); ok {
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
