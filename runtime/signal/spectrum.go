package signal

import "math"

// A Spectrum averages the power spectra of blocks of consecutive samples, and holds the greatest and the least power of each bin.
//
// Levels are dBFS: a complex tone of full scale has 0 dB, 20 log10(|X| / (points * mean of the window * full scale)). Real samples have half a
// spectrum, in which the power of both halves is combined: a sine of full scale has 0 dB too.
type Spectrum struct {
	Blocks   int                   // transformed
	Position uint64                // of the sample that comes next, counted from the first one
	Unused   uint64                // samples at the ends of runs that are shorter than a block, and of blocks with a value that is not finite
	Each     func(power []float64) // called with the power of each block, valid during the call; 1 is full scale; may be nil

	r           Range
	fft         *FFT
	window      []float32
	scale       float64 // from |X|^2 to a power relative to full scale
	pending     []float32
	work        []complex64
	power       []float64
	sum         []float64
	least, most []float64
	firstBin    int  // frequency of bin 0, in bins
	held        bool // least and most have the power of a block
	old         bool // the next block begins an average
}

// NewSpectrum returns an empty spectrum of samples of the range r, with blocks of so many points, a power of two.
func NewSpectrum(points int, w Window, r Range) (*Spectrum, error) {
	fft, err := NewFFT(points)
	if err != nil {
		return nil, err
	}
	s := &Spectrum{r: r, fft: fft, work: make([]complex64, points)}
	window, mean := w.values(points)
	s.window, s.scale = window, math.Pow(float64(points)*mean*r.Full(), -2)
	bins := points
	if r.Complex {
		s.firstBin = -points / 2
	} else {
		bins = points/2 + 1
	}
	s.power, s.sum, s.least, s.most = make([]float64, bins), make([]float64, bins), make([]float64, bins), make([]float64, bins)
	return s, nil
}

// Add adds consecutive samples, which follow those of the previous call unless Break was called between.
func (s *Spectrum) Add(values []float32) {
	size := s.fft.n * s.r.Step()
	for len(values) > 0 {
		if len(s.pending) == 0 && len(values) >= size {
			s.Position += uint64(s.fft.n)
			s.block(values[:size])
			values = values[size:]
			continue
		}
		n := min(size-len(s.pending), len(values))
		s.pending = append(s.pending, values[:n]...)
		s.Position += uint64(n / s.r.Step())
		values = values[n:]
		if len(s.pending) == size {
			s.block(s.pending)
			s.pending = s.pending[:0]
		}
	}
}

// Break marks missing samples: no block contains samples of both sides.
func (s *Spectrum) Break() {
	s.Unused += uint64(len(s.pending) / s.r.Step())
	s.pending = s.pending[:0]
}

// block transforms a block and adds its power.
func (s *Spectrum) block(values []float32) {
	zero, step := float32(s.r.Zero()), s.r.Step()
	var sum float32
	for i, w := range s.window {
		re, im := values[i*step]-zero, float32(0)
		if s.r.Complex {
			im = values[i*step+1] - zero
		}
		sum += (re - re) + (im - im) // NaN unless all values are finite
		s.work[i] = complex(re*w, im*w)
	}
	if sum != 0 {
		s.Unused += uint64(s.fft.n)
		return
	}
	if s.old {
		s.old, s.Blocks = false, 0
		clear(s.sum)
	}
	s.fft.Transform(s.work)
	n := s.fft.n
	for i := range s.power {
		x := s.work[(i+s.firstBin+n)%n]
		p := (float64(real(x))*float64(real(x)) + float64(imag(x))*float64(imag(x))) * s.scale
		if !s.r.Complex && i > 0 && i < n/2 {
			p *= 4
		}
		s.power[i] = p
		s.sum[i] += p
		s.most[i] = max(s.most[i], p)
		if !s.held || p < s.least[i] {
			s.least[i] = p
		}
	}
	s.Blocks++
	s.held = true
	if s.Each != nil {
		s.Each(s.power)
	}
}

// Points returns the number of points of a block.
func (s *Spectrum) Points() int { return s.fft.n }

// Bins returns the number of frequencies.
func (s *Spectrum) Bins() int { return len(s.power) }

// Frequency returns the frequency of a bin in cycles per sample, from -0.5 to 0.5, and from 0 for real samples.
func (s *Spectrum) Frequency(bin int) float64 { return float64(bin+s.firstBin) / float64(s.fft.n) }

// Average returns the mean power of each bin in dBFS, from the lowest frequency. It returns nil if there was no block, as MaxHold and MinHold do.
func (s *Spectrum) Average() []float64 {
	if s.Blocks == 0 {
		return nil
	}
	return s.levels(s.sum, float64(s.Blocks))
}

// MaxHold returns the greatest power of each bin in dBFS.
func (s *Spectrum) MaxHold() []float64 { return s.levels(s.most, 1) }

// MinHold returns the least power of each bin in dBFS.
func (s *Spectrum) MinHold() []float64 { return s.levels(s.least, 1) }

func (s *Spectrum) levels(power []float64, count float64) []float64 {
	if !s.held {
		return nil
	}
	out := make([]float64, len(power))
	for i, p := range power {
		out[i] = decibels(p / count)
	}
	return out
}

// Peak returns the bin of the greatest mean power and its level in dBFS, or false if there was no block.
func (s *Spectrum) Peak() (bin int, level float64, ok bool) {
	level = math.Inf(-1)
	for i, l := range s.Average() {
		if l > level {
			bin, level, ok = i, l, true
		}
	}
	return bin, level, ok
}
