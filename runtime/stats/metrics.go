package stats

import (
	"fmt"
	"maps"
	"math"
	"sync"
)

// Metrics holds named figures set by a script. It is safe for concurrent use.
type Metrics struct {
	mu sync.Mutex
	m  map[string]float64
}

// Set sets a metric to a finite number.
func (m *Metrics) Set(name string, v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("metric %s: %v is not a finite number", name, v)
	}
	if !validName(name) {
		return fmt.Errorf("metric %q: a name is letters, digits, '_' and '.', and starts with a letter", name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[string]float64{}
	}
	m.m[name] = v
	return nil
}

// All returns a copy of the metrics.
func (m *Metrics) All() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := maps.Clone(m.m)
	if out == nil {
		out = map[string]float64{}
	}
	return out
}

// validName reports whether s can be used as a name in thresholds.
func validName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}
