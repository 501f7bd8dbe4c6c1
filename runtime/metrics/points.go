package metrics

import (
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Bounds of exported histograms, in packets and in ns: powers of two, so that each coincides with a bound of the ledger's finer buckets. Times range
// from 1 us to 17 s.
var (
	sizeBounds = powers(0, 14)
	timeBounds = powers(10, 34)
)

func powers(from, to int) []uint64 {
	var out []uint64
	for k := from; k <= to; k++ {
		out = append(out, 1<<k)
	}
	return out
}

// points returns the data of f's metric; if the metric is new, the data is fresh.
func (b *builder) points(f family, fresh metricdata.Aggregation) *metricdata.Aggregation {
	k, there := b.sums[f.name]
	if !there {
		k = len(b.metrics)
		b.sums[f.name] = k
		b.metrics = append(b.metrics, metricdata.Metrics{Name: f.name, Description: f.text, Unit: f.unit, Data: fresh})
	}
	return &b.metrics[k].Data
}

func point[N int64 | float64](b *builder, v N) metricdata.DataPoint[N] {
	return metricdata.DataPoint[N]{Attributes: attribute.NewSet(b.labels...), StartTime: b.start, Time: b.end, Value: v}
}

func (b *builder) counter(f family, v uint64) { sum(b, f, int64(min(v, math.MaxInt64))) }

func (b *builder) counterFloat(f family, v float64) { sum(b, f, v) }

func sum[N int64 | float64](b *builder, f family, v N) {
	at := b.points(f, metricdata.Sum[N]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true})
	s := (*at).(metricdata.Sum[N])
	s.DataPoints = append(s.DataPoints, point(b, v))
	*at = s
}

func (b *builder) gauge(f family, v float64) {
	at := b.points(f, metricdata.Gauge[float64]{})
	g := (*at).(metricdata.Gauge[float64])
	g.DataPoints = append(g.DataPoints, point(b, v))
	*at = g
}

// histogram adds a histogram that is not empty, with times in seconds.
func (b *builder) histogram(f family, h *stats.Histogram) {
	if len(h.Buckets) == 0 {
		return
	}
	bounds, unit := sizeBounds, 1.0
	if h.Unit == "ns" {
		bounds, unit = timeBounds, 1e-9
	}
	p := metricdata.HistogramDataPoint[float64]{Attributes: attribute.NewSet(b.labels...), StartTime: b.start, Time: b.end,
		Count: h.N(), Sum: float64(h.Sum) * unit, BucketCounts: make([]uint64, len(bounds)+1)}
	for _, bound := range bounds {
		p.Bounds = append(p.Bounds, float64(bound)*unit)
	}
	k := 0
	for _, x := range h.Buckets {
		for k < len(bounds) && x.Most > bounds[k] {
			k++
		}
		p.BucketCounts[k] += x.N
	}
	at := b.points(f, metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality})
	d := (*at).(metricdata.Histogram[float64])
	d.DataPoints = append(d.DataPoints, p)
	*at = d
}
