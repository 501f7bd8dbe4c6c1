package metrics

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

const (
	endpointPath = "/metrics"
	mostScrapes  = 8 // concurrent requests; each reads all ledgers
)

// prometheusReader returns the endpoint and its reader.
func prometheusReader(source sdk.Producer) (sdk.Reader, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithProducer(source), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("metrics endpoint: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+endpointPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "daqiri-run: metrics for Prometheus are at "+endpointPath)
	})
	return reader, mux, nil
}
