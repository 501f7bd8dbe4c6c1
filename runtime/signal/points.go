package signal

// Points keeps at most so many complex samples, evenly spread over all that were added. With more samples it drops every second one.
type Points struct {
	limit int
	every uint64 // keeps one of so many samples
	n     uint64
	kept  []complex64
}

// NewPoints returns an empty set of at most limit points, an even number.
func NewPoints(limit int) *Points { return &Points{limit: limit, every: 1} }

// Add adds complex samples. Those with a part that is not finite are not kept.
func (p *Points) Add(values []float32) {
	for i := 0; i+1 < len(values); i += 2 {
		if p.n%p.every == 0 && finite(values[i]) && finite(values[i+1]) {
			if len(p.kept) == p.limit {
				p.thin()
			}
			if p.n%p.every == 0 {
				p.kept = append(p.kept, complex(values[i], values[i+1]))
			}
		}
		p.n++
	}
}

func (p *Points) thin() {
	for i := range p.limit / 2 {
		p.kept[i] = p.kept[2*i]
	}
	p.kept = p.kept[:p.limit/2]
	p.every *= 2
}

// Kept returns the points in the order of time.
func (p *Points) Kept() []complex64 { return p.kept }
