// Package metrics shows the ledgers of running sessions to others: a Prometheus endpoint, and export by OTLP over HTTP,
// both through OpenTelemetry's SDK.
//
// Nothing is counted here: whoever collects reads the ledgers (see produce.go), so that what is not collected costs
// nothing. The names and labels of the reference are kept; see the table in families.go.
//
// The package imports stats and OpenTelemetry's modules. An Exporter is safe for concurrent use.
package metrics
