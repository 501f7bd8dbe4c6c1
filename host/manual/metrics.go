package manual

import (
	"cmp"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/metrics"
)

// Metrics describes the metrics of --metrics and --otlp.
var Metrics = Topic{Name: "metrics", Short: "the metrics of --metrics and --otlp", Parts: metricsParts}

func metricsParts() []Part {
	table := &Table{Columns: []string{"metric", "unit", "meaning"}}
	for _, w := range metrics.Words() {
		table.Rows = append(table.Rows, []string{"`" + w.Prometheus + "`", unit(w.Unit), w.Text})
	}
	return []Part{
		{Words: "`--metrics ADDRESS` shows them to Prometheus, `--otlp URL` sends them to a collector. They are read from the ledger when they are asked " +
			"for: nothing is counted twice. Names are those of Prometheus; OpenTelemetry's have dots, without unit and `_total`: `daqiri.rx.packets`. Histograms have `_bucket`, `_count` and `_sum`. Figures that stay 0 are left out, but for drops."},
		{Table: table},
	}
}

// unit returns a UCUM unit without the braces of annotations, or a word if there is none.
func unit(u string) string {
	return cmp.Or(strings.NewReplacer("{", "", "}", "", "By", "bytes").Replace(u), "any")
}
