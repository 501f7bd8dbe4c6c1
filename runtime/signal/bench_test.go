package signal

import "testing"

// BenchmarkSpectrum measures a block of 4096 complex samples.
func BenchmarkSpectrum(b *testing.B) {
	s, err := NewSpectrum(4096, Windows[0], int8Complex)
	if err != nil {
		b.Fatal(err)
	}
	values := tone(4096, 0.1, 100)
	for b.Loop() {
		s.Add(values)
	}
}
