package stats

import (
	"cmp"
	"slices"
	"strings"
)

// Names of sources and peers that are none.
const (
	OtherSources  = "other"   // all those that came after as many as are counted one by one
	UnknownSource = "unknown" // packets without the field; of missing ones, those in places that nobody has had yet
)

// Source counts what a reorder stage got and missed of one source.
type Source struct {
	Name      string `json:"name"`
	Packets   uint64 `json:"packets"` // in batches that were handed over
	Missing   uint64 `json:"missing"` // in their places, which this source had last
	Late      uint64 `json:"late"`
	Duplicate uint64 `json:"duplicate"`
	Dropped   uint64 `json:"dropped"` // for all other reasons
}

// Sources are the counts of a reorder stage's sources, in the order in which they were seen.
type Sources []Source

// Share is the part of what should have come that is missing.
func (s *Source) Share() float64 { return per(float64(s.Missing), float64(s.Packets+s.Missing)) }

// Worst lists those that lost something, the highest share first, at most n; and how many lost something.
func (s Sources) Worst(n int) (worst Sources, lost int) {
	for _, x := range s {
		if x.Missing+x.Late+x.Duplicate+x.Dropped > 0 {
			worst = append(worst, x)
		}
	}
	lost = len(worst)
	slices.SortStableFunc(worst, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Share(), a.Share()), cmp.Compare(b.Late+b.Duplicate+b.Dropped, a.Late+a.Duplicate+a.Dropped))
	})
	return worst[:min(n, lost)], lost
}

// Peer counts what a socket's queue received of one peer, HOST:PORT.
type Peer struct {
	Name    string `json:"name"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Peers are the counts of a queue's peers, in the order in which they were seen.
type Peers []Peer

// named is one of a list that two readings share.
type named[T any] interface {
	key() string
	with(o T, change func(a, b uint64) uint64) T
}

func (s Source) key() string { return s.Name }
func (p Peer) key() string   { return p.Name }

func (s Source) with(o Source, change func(a, b uint64) uint64) Source {
	return Source{s.Name, change(s.Packets, o.Packets), change(s.Missing, o.Missing), change(s.Late, o.Late),
		change(s.Duplicate, o.Duplicate), change(s.Dropped, o.Dropped)}
}

func (p Peer) with(o Peer, change func(a, b uint64) uint64) Peer {
	return Peer{p.Name, change(p.Packets, o.Packets), change(p.Bytes, o.Bytes)}
}

// joined adds up two lists, or takes o away from list, which then is a later reading of the same.
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

// figureName is a source's name as a part of a figure's: letters, digits and '_'.
func figureName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.Trim(name, "[]"))
}
