package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// figures are numbers by name, as scripts and baseline loops print them.
type figures map[string]float64

// sample is one measurement: the case's value, and what else is worth telling.
type sample struct {
	value float64
	more  figures
}

// side measures one side of a case for about d.
type side func(ctx context.Context, d time.Duration) (sample, error)

// compare measures ours and the peer in turn, alternately the one and the other first, so that neither always finds
// warmer caches or the disk of the other. A nil peer isn't there.
func (r *Result) compare(ctx context.Context, ours, peer side) error {
	d := r.length / (2 * pairCount)
	if peer == nil {
		d = r.length / pairCount
	}
	var mine, theirs []sample
	measure := func(s side, to *[]sample, who string) error {
		if s == nil {
			return nil
		}
		got, err := s(ctx, d)
		if err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		*to = append(*to, got)
		return nil
	}
	for i := range pairCount {
		first := func() error { return measure(ours, &mine, "ours") }
		second := func() error { return measure(peer, &theirs, "peer") }
		if i%2 == 1 {
			first, second = second, first
		}
		if err := first(); err != nil {
			return err
		}
		if err := second(); err != nil {
			return err
		}
	}
	r.take(mine, theirs)
	return nil
}

// take fills the result from the samples of both sides; theirs may be empty.
func (r *Result) take(mine, theirs []sample) {
	r.Value = number(median(values(mine)))
	r.Figures = figures{}
	merge(r.Figures, "", mine)
	merge(r.Figures, "peer_", theirs)
	for i, s := range mine {
		p := Pair{Value: s.value}
		if i < len(theirs) {
			p.PeerValue = number(theirs[i].value)
		}
		r.Pairs = append(r.Pairs, p)
	}
	if len(theirs) == 0 {
		r.Peer = nil
		return
	}
	r.PeerValue = number(median(values(theirs)))
	var ratios []float64
	for _, p := range r.Pairs {
		if *p.PeerValue != 0 {
			ratios = append(ratios, p.Value / *p.PeerValue)
		}
	}
	if len(ratios) > 0 {
		r.Ratio, r.RatioMin, r.RatioMax = number(median(ratios)), number(slices.Min(ratios)), number(slices.Max(ratios))
	}
}

// merge adds the median of each further figure.
func merge(to figures, prefix string, samples []sample) {
	if len(samples) == 0 {
		return
	}
	for name := range maps.Keys(samples[0].more) {
		var list []float64
		for _, s := range samples {
			list = append(list, s.more[name])
		}
		to[prefix+name] = median(list)
	}
}

func values(samples []sample) []float64 {
	var list []float64
	for _, s := range samples {
		list = append(list, s.value)
	}
	return list
}

// median is the middle value, of an even number the mean of the two in the middle; 0 of none.
func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	if n == 0 {
		return 0
	}
	return (list[(n-1)/2] + list[n/2]) / 2
}

func number(v float64) *float64 { return &v }
