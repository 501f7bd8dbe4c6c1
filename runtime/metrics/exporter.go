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

// Options says who may see the metrics, and how.
type Options struct {
	Listen  string // of the Prometheus endpoint, HOST:PORT; without a host the loopback; empty: none
	OTLP    string // URL of a collector; empty: what OTLPFromEnv said
	FromEnv bool   // export to the collector that the environment names
	Version string // of the program
	Log     func(level, text string)
}

// Exporter shows sessions to others until it is closed.
type Exporter struct {
	server   *http.Server
	listener net.Listener
	provider *sdk.MeterProvider
}

// closeTime is how long the end waits for a collector to take the last figures, and for scrapers to be served.
const closeTime = 2 * time.Second

// ErrOption is that an option makes no sense, whatever the machine.
var ErrOption = errors.New("metrics option")

// Start begins to show what read returns: it is called from any goroutine, whenever somebody collects. Errors are
// those of the options (ErrOption) and of the system.
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
			_ = e.provider.Shutdown(context.Background()) // nothing was shown yet
			return nil, err
		}
	}
	return e, nil
}

// URL is where the Prometheus endpoint is, empty where there is none.
func (e *Exporter) URL() string {
	if e.listener == nil {
		return ""
	}
	return "http://" + e.listener.Addr().String() + endpointPath
}

// Close shows the last figures to the collector, and ends the endpoint. Blocks for some seconds at most.
func (e *Exporter) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // what the collector refused was logged
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
	go func() { _ = e.server.Serve(e.listener) }() // it ends with Close
	return nil
}
