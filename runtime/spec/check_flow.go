package spec

import (
	"fmt"
	"strings"
)

// checkFlows checks ids, which are unique within a side and, unless 0, among all sides of
// that direction, and the queues that flows name.
func (p *parser) checkFlows(i *Interface, s side, ids map[string]*Flow) {
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
				if findQueue(s.queues, id) == nil {
					p.errorf(a.queueAt[n], "no %s queue has id %d (there are %s)", s.name, id, queueList(s.queues))
				}
			}
		}
	}
}

func findQueue(queues []*Queue, id int) *Queue {
	for _, q := range queues {
		if q.ID == id {
			return q
		}
	}
	return nil
}

func queueList(queues []*Queue) string {
	var s []string
	for _, q := range queues {
		s = append(s, fmt.Sprint(q.ID))
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

func (p *parser) checkFlex(i *Interface) {
	for _, f := range i.RX.Flows {
		m := f.Match.Flex
		if m == nil || !f.Match.Has("flex_item_id") {
			continue
		}
		found := false
		for _, it := range i.RX.FlexItems {
			found = found || it.ID == m.ItemID
		}
		if !found {
			p.errorf(f.Match.Key("flex_item_id"), "no flex item has id %d", m.ItemID)
		}
	}
}
