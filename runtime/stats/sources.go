package stats

import (
	"cmp"
	"slices"
	"strings"
)

// Special names of sources and peers.
const (
	OtherSources  = "other"   // those beyond the number of individual counters
	UnknownSource = "unknown" // packets without the field; for Missing, positions that no source has used yet
)

// Source counts the packets that a reorder or gaps stage received and missed of one source.
type Source struct {
	Name      string `json:"name"`
	Packets   uint64 `json:"packets"` // in delivered batches; of a gaps stage, with a new number
	Missing   uint64 `json:"missing"` // in positions last used by this source
	Late      uint64 `json:"late"`
	Duplicate uint64 `json:"duplicate"`
	Dropped   uint64 `json:"dropped"`             // for all other reasons
	Reordered uint64 `json:"reordered,omitempty"` // of a gaps stage: new numbers below the highest
	Restarts  uint64 `json:"restarts,omitempty"`  // of a gaps stage
}

// Sources holds the counts of a stage's sources, in order of appearance.
type Sources []Source

// Share returns the fraction of expected packets that is missing.
func (s *Source) Share() float64 { return per(float64(s.Missing), float64(s.Packets+s.Missing)) }

// Worst returns at most n sources with losses, highest share first, and the number of sources with losses.
func (s Sources) Worst(n int) (worst Sources, lost int) {
	for _, x := range s {
		if x.Missing+x.Late+x.Duplicate+x.Dropped+x.Restarts > 0 {
			worst = append(worst, x)
		}
	}
	lost = len(worst)
	slices.SortStableFunc(worst, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Share(), a.Share()), cmp.Compare(b.Late+b.Duplicate+b.Dropped, a.Late+a.Duplicate+a.Dropped))
	})
	return worst[:min(n, lost)], lost
}

// Peer counts the packets that a socket's queue received of one peer, HOST:PORT.
type Peer struct {
	Name    string `json:"name"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Peers holds the counts of a queue's peers, in order of appearance.
type Peers []Peer

// named is an element of a list, identified by key.
type named[T any] interface {
	key() string
	with(o T, change func(a, b uint64) uint64) T
}

func (s Source) key() string { return s.Name }
func (p Peer) key() string   { return p.Name }

func (s Source) with(o Source, change func(a, b uint64) uint64) Source {
	return Source{s.Name, change(s.Packets, o.Packets), change(s.Missing, o.Missing), change(s.Late, o.Late),
		change(s.Duplicate, o.Duplicate), change(s.Dropped, o.Dropped), change(s.Reordered, o.Reordered), change(s.Restarts, o.Restarts)}
}

func (p Peer) with(o Peer, change func(a, b uint64) uint64) Peer {
	return Peer{p.Name, change(p.Packets, o.Packets), change(p.Bytes, o.Bytes)}
}

// joined combines two lists by change: their sum, or the difference of a later reading list and an earlier one o.
func joined[L ~[]T, T named[T]](list, o L, change func(a, b uint64) uint64) L {
	place := map[string]int{}
	out := slices.Clone(list)
	for k, x := range out {
		place[x.key()] = k
	}
	for _, x := range o {
		if k, ok := place[x.key()]; ok {
			out[k] = out[k].with(x, change)
		} else {
			out = append(out, x)
		}
	}
	return out
}

// figureName converts a source's name to a part of a figure's name: letters, digits and '_'.
func figureName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.Trim(name, "[]"))
}
