package signal

// Points keeps at most so many complex samples, evenly spread over all that were added: one of each so many consecutive ones. Which one is
// pseudo-random, so that a periodic signal keeps all of its values. With more samples it drops one of each two that it kept.
type Points struct {
	limit int
	every uint64 // keeps one of so many samples, a power of two
	n     uint64
	kept  []complex64
}

// NewPoints returns an empty set of at most limit points, an even number.
func NewPoints(limit int) *Points { return &Points{limit: limit, every: 1} }

// Add adds complex samples. Those with a part that is not finite are not kept.
func (p *Points) Add(values []float32) {
	for i := 0; i+1 < len(values); i += 2 {
		if p.keeps(p.n) && finite(values[i]) && finite(values[i+1]) {
			if len(p.kept) == p.limit {
				p.thin()
			}
			if p.keeps(p.n) {
				p.kept = append(p.kept, complex(values[i], values[i+1]))
			}
		}
		p.n++
	}
}

// keeps reports whether sample n is the one that is kept of its group of so many samples.
func (p *Points) keeps(n uint64) bool { return n%p.every == scrambled(n/p.every)%p.every }

// scrambled returns a pseudo-random number for n.
func scrambled(n uint64) uint64 {
	n = (n ^ n>>32) * 0x9e3779b97f4a7c15
	return (n ^ n>>29) * 0xbf58476d1ce4e5b9 >> 20
}

func (p *Points) thin() {
	for i := range p.limit / 2 {
		p.kept[i] = p.kept[2*i+int(scrambled(uint64(i)<<32|p.every)&1)]
	}
	p.kept = p.kept[:p.limit/2]
	p.every *= 2
}

// Kept returns the points in the order of time.
func (p *Points) Kept() []complex64 { return p.kept }
