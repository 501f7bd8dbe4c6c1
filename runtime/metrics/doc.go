// Package metrics exports the ledgers of running sessions: through a Prometheus endpoint and by OTLP over HTTP, both with OpenTelemetry's SDK.
//
// The package keeps no counters: ledgers are read at each collection (see produce.go), so metrics cost nothing between collections. Names and labels
// of the reference are kept; see the table in families.go.
//
// The package imports stats and OpenTelemetry's modules. An Exporter is safe for concurrent use.
package metrics
