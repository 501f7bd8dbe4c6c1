package spec

import (
	"fmt"
	"strings"
)

// checkFlows checks ids, which are unique within a side and, unless 0, among all sides of that direction, and the queues of flows.
func (p *parser) checkFlows(i *Interface, s side, ids map[string]*Flow) {
	queues := byID(s.queues)
	for _, f := range s.flows {
		key := fmt.Sprintf("%s %d", s.name, f.ID)
		if f.ID == 0 {
			key += " " + i.Path
		}
		if first := ids[key]; first != nil && f.Has("id") {
			p.errorf(f.Key("id"), "id %d is used twice by %s flows%s", f.ID, s.name, atLine(first.Key("id").Pos))
		} else if f.Has("id") {
			ids[key] = f
		}
		for _, a := range f.Actions {
			for n, id := range a.Queues {
				if queues[id] == nil {
					p.errorf(a.queueAt[n], "no %s queue has id %d (there are %s)", s.name, id, queueList(s.queues))
				}
			}
		}
	}
}

// queueList returns the first queue ids.
func queueList(queues []*Queue) string {
	const most = 32
	var s []string
	for _, q := range queues[:min(len(queues), most)] {
		s = append(s, fmt.Sprint(q.ID))
	}
	switch {
	case len(s) == 0:
		return "none"
	case len(queues) > most:
		s = append(s, "…")
	}
	return strings.Join(s, ", ")
}

func (p *parser) checkFlex(i *Interface) {
	items := index(i.RX.FlexItems, func(it FlexItem) int { return it.ID })
	for _, f := range i.RX.Flows {
		m := f.Match.Flex
		if m == nil || !f.Match.Has("flex_item_id") {
			continue
		}
		if _, there := items[m.ItemID]; !there {
			p.errorf(f.Match.Key("flex_item_id"), "no flex item has id %d", m.ItemID)
		}
	}
}
