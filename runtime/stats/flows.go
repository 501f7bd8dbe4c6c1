package stats

import (
	"cmp"
	"slices"
)

// Flow counts what a receive queue received of one flow: its packets, and their bytes as they came.
type Flow struct {
	ID      uint32 `json:"id"`             // 0: of all flows for which there was no counter left
	Name    string `json:"name,omitempty"` // in the configuration or the script; that of a deleted flow stays
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Flows are the counts of a queue's flows, by id. Packets that no flow took are in none of them.
type Flows []Flow

// with adds up two lists, or takes o away from f, which then is a later reading of the same.
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
