package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	collect "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	wire "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// sample returns a ledger with a value for every metric.
func sample() *stats.Ledger {
	drops := stats.Counts{{Name: "queue_full", N: 3}, {Name: "too_long"}}
	extra := stats.Counts{{Name: "kernel_dropped", N: 9}, {Name: "stall_ns", N: 3e9}, {Name: "late"}}
	times := func(names ...string) (list stats.Histograms) {
		for _, name := range names {
			list = append(list, &stats.Histogram{Name: name, Unit: "ns", Buckets: []stats.Bucket{{Most: 2047, N: 3}, {Most: 1 << 40, N: 1}}, Sum: 1 << 40})
		}
		return list
	}
	rx := func(id int, in uint64) stats.Line {
		return stats.Line{Kind: stats.Rx, Name: "port", QueueID: id, Engine: "loop", PortID: 1, In: in, InBytes: 10 * in, Out: in - 3, Bursts: 5,
			Dropped: drops, Extra: extra,
			Histograms: stats.Histograms{{Name: "burst_size", Unit: "packets", Buckets: []stats.Bucket{{Most: 1, N: 2}, {Most: 32, N: 3}}, Sum: 98}},
			Flows:      stats.Flows{{ID: 7, Name: "antenna 3", Packets: in - 1, Bytes: 10 * (in - 1)}},
			Peers:      stats.Peers{{Name: "192.0.2.1:7148", Packets: in, Bytes: 10 * in}}}
	}
	return &stats.Ledger{StartNS: 1e9, EndNS: 3e9, Lines: []stats.Line{rx(0, 100), rx(1, 50),
		{Kind: stats.Tx, Name: "port", Engine: "loop", PortID: 1, In: 70, Out: 60, OutBytes: 600, Held: 10, PaceBPS: 1e6, PacePPS: 10,
			Histograms: times("gap_error", "time_error")},
		{Kind: stats.Wire, Name: "port", Engine: "loop", PortID: 1, In: 60, InBytes: 600, Out: 60},
		{Kind: stats.Stage, Name: "blocks", In: 20, Out: 20, Histograms: times("completion_time", "run_time"),
			Sources: stats.Sources{{Name: "3", Packets: 16, Missing: 4, Late: 3, Duplicate: 2, Dropped: 1}}},
		{Kind: stats.Stage, Name: "k.tx", In: 20, Out: 20, Histograms: times("send_time", "put_time", "get_time", "add_time", "copy_time", "file_time")},
		{Kind: stats.Tap, Name: `a"b\c` + "\nµ", In: 20, InBytes: 200, Out: 20, Histograms: times("handler_time")},
		{Kind: stats.Writer, Name: "disk", In: 20, Out: 19, Held: 1, Histograms: times("write_stall")},
	}, QueueErrors: []stats.QueueError{{Line: "port.tx.0", Text: "no route", Times: 4}}, Metrics: map[string]float64{"power.max": -2.5},
		Process: stats.Process{RSS: 1 << 20, CPUSeconds: 1.5}}
}

// start starts an exporter that is closed at the end of the test, and returns a function that returns its log.
func start(t *testing.T, o Options, sessions ...Session) (*Exporter, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	o.Log = func(level, text string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, level+" "+text)
	}
	e, err := Start(o, func() []Session { return sessions })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// scrape reads the endpoint with Prometheus's own parser.
func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	return families
}

// series returns the values of plain metrics by name and non-empty labels: "name a=b c=d".
func series(families map[string]*dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			key := []string{name}
			for _, l := range m.Label {
				key = append(key, strings.TrimPrefix(l.GetName(), "daqiri_")+"="+l.GetValue())
			}
			if m.Histogram == nil {
				out[strings.Join(key, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestEndpoint(t *testing.T) {
	e, _ := start(t, Options{Listen: "127.0.0.1:0", Version: "1.2"}, Session{"one", sample()})
	families := scrape(t, e.URL())
	got := series(families)
	const port, q0, all = "engine=loop interface_name=port port_id=1 ", "queue_id=0 session_name=one", "queue_id=all session_name=one"
	for key, want := range map[string]float64{
		"daqiri_rx_packets_total direction=rx " + port + q0:                                                                     100,
		"daqiri_rx_packets_total direction=rx " + port + all:                                                                    150,
		"daqiri_rx_bytes_total direction=rx " + port + all:                                                                      1500,
		"daqiri_tx_packets_total direction=tx " + port + all:                                                                    60,
		"daqiri_wire_bytes_total direction=wire " + port + q0:                                                                   600,
		"daqiri_dropped_packets_total direction=rx drop_reason=queue_full " + port + all:                                        6,
		"daqiri_dropped_packets_total direction=rx drop_reason=too_long " + port + q0:                                           0,
		"daqiri_flow_packets_total direction=rx engine=loop flow_id=7 flow_name=antenna 3 interface_name=port port_id=1 " + all: 148,
		"daqiri_kernel_dropped_total direction=rx " + port + all:                                                                18,
		"daqiri_stall_seconds_total direction=rx " + port + q0:                                                                  3,
		"daqiri_held_packets direction=tx " + port + q0:                                                                         10,
		"daqiri_stage_out_packets_total session_name=one stage_kind=writer stage_name=disk":                                     19,
		"daqiri_stage_in_packets_total session_name=one stage_kind=tap stage_name=a\"b\\c\nµ":                                   20,
		"daqiri_metric metric_name=power.max session_name=one":                                                                  -2.5,
		"daqiri_faults_total fault=no route queue_id=port.tx.0 session_name=one":                                                4,
		"daqiri_session_time_seconds session_name=one":                                                                          2,
		"process_cpu_time_seconds_total":                                                                                        1.5,
		"target_info service_name=daqiri-run service_version=1.2":                                                               1,
	} {
		if v, there := got[key]; !there || v != want {
			t.Errorf("%q: %v (there: %v), want %v", key, v, there, want)
		}
	}
	if _, there := got["daqiri_late_total direction=rx "+port+q0]; there {
		t.Error("a further figure that is 0 is shown")
	}
}

func TestHistograms(t *testing.T) {
	e, _ := start(t, Options{Listen: "127.0.0.1:0"}, Session{"one", sample()})
	families := scrape(t, e.URL())
	for _, c := range []struct {
		name  string
		count uint64
		sum   float64
		le    float64 // cumulative count at this bound
		n     uint64
	}{
		{"daqiri_rx_burst_size", 5, 98, 16, 2},
		{"daqiri_rx_burst_size", 5, 98, 32, 5},
		{"daqiri_handler_time_seconds", 4, (1 << 40) * 1e-9, 2048e-9, 3},
		{"daqiri_write_stall_seconds", 4, (1 << 40) * 1e-9, 1024e-9, 0},
		{"daqiri_tx_gap_error_seconds", 4, (1 << 40) * 1e-9, (1 << 34) * 1e-9, 3},
	} {
		f := families[c.name]
		if f == nil {
			t.Errorf("%s is missing", c.name)
			continue
		}
		h := f.Metric[0].Histogram
		at := slices.IndexFunc(h.Bucket, func(b *dto.Bucket) bool { return b.GetUpperBound() > c.le*0.999 })
		if h.GetSampleCount() != c.count || diff(h.GetSampleSum(), c.sum) > 1e-9 || h.Bucket[at].GetCumulativeCount() != c.n {
			t.Errorf("%s: %v, want count %d, sum %v, %d at %v", c.name, h, c.count, c.sum, c.n, c.le)
		}
	}
}

func diff(a, b float64) float64 { return max(a-b, b-a) / max(b, 1) }

// TestNames checks that Names lists exactly the metrics of the endpoint when all have a value.
func TestNames(t *testing.T) {
	all := sample()
	all.Lines[0].Extra = nil
	for _, r := range native.ExtraRows {
		all.Lines[0].Extra = append(all.Lines[0].Extra, stats.Count{Name: r.Name, N: 1})
	}
	e, _ := start(t, Options{Listen: "127.0.0.1:0"}, Session{"one", all})
	var shown []string
	for name, f := range scrape(t, e.URL()) {
		switch {
		case f.GetType() == dto.MetricType_HISTOGRAM:
			shown = append(shown, name+"_bucket", name+"_count", name+"_sum")
		case name != "target_info":
			shown = append(shown, name)
		}
	}
	slices.Sort(shown)
	if d := cmp.Diff(Names(), shown); d != "" {
		t.Errorf("listed and shown differ: %s", d)
	}
}

func TestSessionsOfOneName(t *testing.T) {
	e, _ := start(t, Options{Listen: "127.0.0.1:0"}, Session{"a", sample()}, Session{"b", sample()}, Session{"a", sample()})
	got := series(scrape(t, e.URL()))
	const key = "daqiri_rx_packets_total direction=rx engine=loop interface_name=port port_id=1 queue_id=all session_name="
	if got[key+"a"] != 300 || got[key+"b"] != 150 {
		t.Errorf("a: %v, b: %v", got[key+"a"], got[key+"b"])
	}
}

// otlpServer is a collector that sends each request to taken.
func otlpServer(t *testing.T, taken chan<- *collect.ExportMetricsServiceRequest) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m collect.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil || r.URL.Path != otlpPath || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s %s: %v", r.Method, r.URL, r.Header, err)
		}
		taken <- &m
	}))
	t.Cleanup(s.Close)
	return s
}

// TestOTLP checks that the final export equals the endpoint's content.
func TestOTLP(t *testing.T) {
	taken := make(chan *collect.ExportMetricsServiceRequest, 4)
	server := otlpServer(t, taken)
	e, log := start(t, Options{Listen: "127.0.0.1:0", OTLP: server.URL}, Session{"one", sample()})
	want := series(scrape(t, e.URL()))
	e.Close()
	got := map[string]float64{}
	histograms := 0
	for _, m := range (<-taken).ResourceMetrics[0].ScopeMetrics[0].Metrics {
		points := append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...)
		histograms += len(m.GetHistogram().GetDataPoints())
		for _, p := range points {
			f := family{name: m.Name, unit: m.Unit}
			suffix := ""
			if m.GetSum() != nil {
				suffix = "_total"
			}
			got[otlpKey(f.prometheus(suffix), p)] = p.GetAsDouble() + float64(p.GetAsInt())
		}
	}
	delete(want, "target_info service_name=daqiri-run service_version=")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("endpoint and collector differ: %s", d)
	}
	if histograms != 17 {
		t.Errorf("%d histograms, want those of two queues and their sum, two of the transmit queue and its sum each, a handler, a writer, two of a reorder stage and six of a kernel's ring", histograms)
	}
	if lines := log(); len(lines) > 0 {
		t.Errorf("logged: %q", lines)
	}
}

func otlpKey(name string, p *wire.NumberDataPoint) string {
	var labels []string
	for _, a := range p.Attributes {
		label := strings.ReplaceAll(a.Key, ".", "_")
		labels = append(labels, strings.TrimPrefix(label, "daqiri_")+"="+a.Value.GetStringValue())
	}
	slices.Sort(labels)
	return strings.Join(append([]string{name}, labels...), " ")
}

// TestOTLPUnreachable checks that an unreachable collector is reported once, and once again when it is back, and that Close does not wait for it.
func TestOTLPUnreachable(t *testing.T) {
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	e, log := start(t, Options{OTLP: "http://" + address}, Session{"one", sample()})
	time.Sleep(100 * time.Millisecond) // several attempts
	if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], "warn metrics export: ") || !strings.Contains(lines[0], "refused") {
		t.Errorf("logged %q", lines)
	}
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Skipf("somebody else has the port by now: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	for deadline := time.Now().Add(10 * time.Second); len(log()) < 2 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	e.Close()
	if lines := log(); len(lines) != 2 || !strings.Contains(lines[1], "again") {
		t.Errorf("logged %q", lines)
	}
}

func TestEndpointCloses(t *testing.T) {
	e, _ := start(t, Options{Listen: ":0"})
	url := e.URL()
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("without a host it listens at %s", url)
	}
	if got := series(scrape(t, url)); got["process_memory_usage_bytes"] == 0 {
		t.Errorf("without a session: %v", got)
	}
	e.Close()
	if _, err := http.Get(url); err == nil {
		t.Error("the endpoint is still there")
	}
}

func TestFaultyOptions(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().String()
	for _, c := range []struct {
		name, want string
		o          Options
	}{
		{"port in use", "metrics endpoint: listen tcp " + taken + ": bind: address already in use", Options{Listen: taken}},
		{"no port", `metrics option: "localhost" is not HOST:PORT`, Options{Listen: "localhost"}},
		{"port alone", `"9464" is not HOST:PORT, such as :9464`, Options{Listen: "9464"}},
		{"not an address", "metrics endpoint: listen tcp", Options{Listen: "127.0.0.1:99999"}},
		{"no scheme", `metrics option: "localhost:4318" is not the URL of a collector, such as http://`, Options{OTLP: "localhost:4318"}},
		{"another scheme", `"grpc://x:1" is not the URL`, Options{OTLP: "grpc://x:1"}},
		{"collector and endpoint", "address already in use", Options{Listen: taken, OTLP: "http://127.0.0.1:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Log = func(string, string) {}
			if e, err := Start(c.o, func() []Session { return nil }); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", e, err, c.want)
			}
		})
	}
}

func TestOTLPFromEnv(t *testing.T) {
	for _, c := range []struct {
		env  string
		want string
	}{
		{"", "false <nil>"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "true <nil>"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=https://c/v1/metrics", "true <nil>"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=true", "false <nil>"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_METRICS_EXPORTER=none", "false <nil>"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", `false OTEL_EXPORTER_OTLP_ENDPOINT: metrics option: "c:4318" is not the URL`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
			"false metrics option: OTEL_EXPORTER_OTLP_PROTOCOL=grpc: only http/protobuf"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf",
			"true <nil>"},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			key, value, _ := strings.Cut(pair, "=")
			env[key] = value
		}
		on, err := OTLPFromEnv(env)
		if got := fmt.Sprint(on, " ", err); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.env, got, c.want)
		}
	}
}

// TestDashboard checks that every metric in the dashboard exists.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../scripts/grafana/daqiri.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Query any } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	known := Names()
	labels := regexp.MustCompile(`\{[^}]*\}|\bby \([^)]*\)|label_values\(|, daqiri_\w+\)`) // names other than metrics
	queries := 0
	check := func(where, expr string) {
		queries++
		names := regexp.MustCompile(`\b(daqiri|process)_\w+`).FindAllString(labels.ReplaceAllString(expr, ""), -1)
		if len(names) == 0 {
			t.Errorf("%s: no metric in %s", where, expr)
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s asks for %s, which is not shown", where, name)
			}
		}
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			check("a variable", q["query"].(string))
		}
	}
	if queries < 12 {
		t.Errorf("%d queries", queries)
	}
}

// TestMetricsOfOneName checks that script metrics of all sessions of one name are kept.
func TestMetricsOfOneName(t *testing.T) {
	first, second := sample(), sample()
	second.Metrics = map[string]float64{"other": 4}
	e, _ := start(t, Options{Listen: "127.0.0.1:0"}, Session{"one", first}, Session{"one", second})
	got := series(scrape(t, e.URL()))
	if got["daqiri_metric metric_name=power.max session_name=one"] != -2.5 || got["daqiri_metric metric_name=other session_name=one"] != 4 {
		t.Errorf("%v", got)
	}
	if n := got["daqiri_source_missing_total session_name=one source=3 stage_kind=stage stage_name=blocks"]; n != 8 {
		t.Errorf("%v packets of source 3 are missing, want 8", n)
	}
}

// TestUnits checks that exported units match the metric names, and that peers and flows have packets in packets and bytes in bytes.
func TestUnits(t *testing.T) {
	taken := make(chan *collect.ExportMetricsServiceRequest, 4)
	server := otlpServer(t, taken)
	e, _ := start(t, Options{OTLP: server.URL}, Session{"one", sample()})
	e.Close()
	units := map[string]string{".packets": "{packet}", ".bytes": "By", ".size": "{packet}", ".time": "s", ".stall": "s", ".error": "s",
		".missing": "{packet}", ".late": "{packet}", ".duplicate": "{packet}", ".pace": "bit/s"}
	others := map[string]string{"daqiri.tx.pace.packets": "{packet}/s", "daqiri.late": "", "process.memory.usage": "By"}
	sums := map[string]int64{}
	for _, m := range (<-taken).ResourceMetrics[0].ScopeMetrics[0].Metrics {
		want, known := others[m.Name]
		if !known {
			want, known = units[m.Name[strings.LastIndexByte(m.Name, '.'):]]
		}
		if known && m.Unit != want {
			t.Errorf("%s has the unit %q, want %q", m.Name, m.Unit, want)
		}
		for _, p := range m.GetSum().GetDataPoints() {
			sums[m.Name] += p.GetAsInt()
		}
	}
	for name, want := range map[string]int64{"daqiri.peer.packets": 150, "daqiri.peer.bytes": 1500, "daqiri.flow.packets": 148, "daqiri.flow.bytes": 1480} {
		if sums[name] != want {
			t.Errorf("%s: %d, want %d", name, sums[name], want)
		}
	}
}
