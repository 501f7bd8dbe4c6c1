package stats

import (
	"cmp"
	"slices"
)

// Flow counts the packets that a receive queue received of one flow, and their bytes as received.
type Flow struct {
	ID      uint32 `json:"id"`             // 0: all flows without a counter of their own
	Name    string `json:"name,omitempty"` // name in the configuration or the script; kept when the flow is deleted
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Flows holds the counts of a queue's flows, by id. Packets that match no flow are not included.
type Flows []Flow

// with combines two lists by change: the sum, or the difference of a later reading f and an earlier one o.
func (f Flows) with(o Flows, change func(a, b uint64) uint64) Flows {
	var out Flows
	for _, x := range f {
		if k, ok := slices.BinarySearchFunc(o, x.ID, byID); ok {
			x.Packets, x.Bytes = change(x.Packets, o[k].Packets), change(x.Bytes, o[k].Bytes)
		}
		out = append(out, x)
	}
	for _, x := range o {
		if _, ok := slices.BinarySearchFunc(f, x.ID, byID); !ok {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b Flow) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func byID(f Flow, id uint32) int { return cmp.Compare(f.ID, id) }
