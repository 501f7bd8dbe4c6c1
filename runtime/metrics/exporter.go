package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/daqiri/daqiri-run/runtime/listen"
)

// Options configures an Exporter.
type Options struct {
	Listen  string // address of the Prometheus endpoint, HOST:PORT; without a host the loopback address; empty: none
	OTLP    string // URL of a collector; empty: that of the environment, if FromEnv
	FromEnv bool   // export to the collector given by the environment
	Version string // version of the program
	Log     func(level, text string)
}

// Exporter exports the metrics of sessions until it is closed.
type Exporter struct {
	server   *http.Server
	listener net.Listener
	provider *sdk.MeterProvider
}

// closeTime is how long Close waits for the final export and for responses to scrapers.
const closeTime = 2 * time.Second

// ErrOption reports an option that is invalid on any machine.
var ErrOption = errors.New("metrics option")

// Start starts the export of the sessions that read returns. read is called at each collection, by any goroutine. Errors are those of the options
// (ErrOption) and of the system.
func Start(o Options, read func() []Session) (*Exporter, error) {
	e := &Exporter{}
	source := &producer{scope: instrumentation.Scope{Name: "daqiri", Version: o.Version}, read: read}
	options := []sdk.Option{sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "daqiri-run"),
		attribute.String("service.version", o.Version)))}
	var handler http.Handler
	if o.Listen != "" {
		reader, h, err := prometheusReader(source)
		if err != nil {
			return nil, err
		}
		options, handler = append(options, sdk.WithReader(reader)), h
	}
	if o.OTLP != "" || o.FromEnv {
		reader, err := otlpReader(o, source)
		if err != nil {
			return nil, err
		}
		options = append(options, sdk.WithReader(reader))
	}
	e.provider = sdk.NewMeterProvider(options...)
	if handler != nil {
		if err := e.listen(o.Listen, handler); err != nil {
			_ = e.provider.Shutdown(context.Background()) // no metrics were exported yet
			return nil, err
		}
	}
	return e, nil
}

// URL returns the URL of the Prometheus endpoint, or "" if there is none.
func (e *Exporter) URL() string {
	if e.listener == nil {
		return ""
	}
	return "http://" + e.listener.Addr().String() + endpointPath
}

// Close exports the final figures to the collector and closes the endpoint. It blocks for at most some seconds.
func (e *Exporter) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // export errors are already logged
	if e.server != nil && e.server.Shutdown(ctx) != nil {
		_ = e.server.Close() // a scraper that does not read
	}
}

// listen opens the endpoint.
func (e *Exporter) listen(address string, h http.Handler) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is not HOST:PORT, such as :9464 (this machine alone) or 0.0.0.0:9464", ErrOption, address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("metrics endpoint: %w", err)
	}
	e.listener = listen.New(l)
	e.server = &http.Server{Handler: listen.Guard(host, h), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	go func() { _ = e.server.Serve(e.listener) }() // ends at Close
	return nil
}
