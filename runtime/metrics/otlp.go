package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// otlpPath is the path of a collector's URL if it has none.
const otlpPath = "/v1/metrics"

// OTLPFromEnv reports whether the environment configures an export by OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT. It returns
// an error if the configuration is not supported.
func OTLPFromEnv(env map[string]string) (bool, error) {
	first := func(name string) (string, string) {
		if own := "OTEL_EXPORTER_OTLP_METRICS_" + name; env[own] != "" {
			return own, env[own]
		}
		return "OTEL_EXPORTER_OTLP_" + name, env["OTEL_EXPORTER_OTLP_"+name]
	}
	name, endpoint := first("ENDPOINT")
	if endpoint == "" || env["OTEL_SDK_DISABLED"] == "true" || env["OTEL_METRICS_EXPORTER"] == "none" {
		return false, nil
	}
	if _, err := collectorURL(endpoint); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if name, protocol := first("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("%w: %s=%s: only http/protobuf is in this version", ErrOption, name, protocol)
	}
	return true, nil
}

// collectorURL returns the checked URL of a collector, including the path.
func collectorURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%w: %q is not the URL of a collector, such as http://localhost:4318", ErrOption, text)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = otlpPath
	}
	return u.String(), nil
}

// otlpReader returns the reader that exports every OTEL_METRIC_EXPORT_INTERVAL (60 s) and at the end.
func otlpReader(o Options, source sdk.Producer) (sdk.Reader, error) {
	// Counters are cumulative: the next export includes a failed one, so retries are off.
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{})}
	if o.OTLP != "" {
		u, err := collectorURL(o.OTLP)
		if err != nil {
			return nil, err
		}
		options = append(options, otlpmetrichttp.WithEndpointURL(u))
	}
	exporter, err := otlpmetrichttp.New(context.Background(), options...)
	if err != nil {
		return nil, fmt.Errorf("metrics export: %w", err)
	}
	return sdk.NewPeriodicReader(&collector{Exporter: exporter, log: o.Log}, sdk.WithProducer(source)), nil
}

// collector is an exporter that logs once when exports begin to fail and once when they succeed again.
type collector struct {
	sdk.Exporter
	log    func(level, text string)
	silent atomic.Bool
}

// Export sends the metrics and logs errors.
func (c *collector) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := c.Exporter.Export(ctx, m)
	if within := errors.Unwrap(err); within != nil {
		err = within // without the exporter's prefix
	}
	switch {
	case errors.Is(err, context.Canceled): // by Close, which exports once more
	case err != nil && !c.silent.Swap(true):
		c.log("warn", fmt.Sprintf("metrics export: %v; the run continues, and so do the attempts", err))
	case err == nil && c.silent.Swap(false):
		c.log("info", "metrics export: the collector takes metrics again")
	}
	return nil
}
