package cli

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

//go:embed testdata/prometheus.lua
var prometheusScript string

// prometheusServer is a real Prometheus that scrapes target every second, in a folder of its own.
type prometheusServer struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target string) *prometheusServer {
	t.Helper()
	program, err := require.Tool("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	dir, listen := t.TempDir(), harness.FreeAddress(t)
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: { scrape_interval: 1s }\nscrape_configs:\n- { job_name: daqiri, static_configs: [ { targets: [ \"" + target + "\" ] } ] }\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	log := new(harness.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus printed:\n%s", log.String())
		}
	})
	return &prometheusServer{t, "http://" + listen}
}

// query evaluates an expression as a panel does: the values of its series by their labels; none while there is no answer.
func (p *prometheusServer) query(expr string) map[string]float64 {
	p.t.Helper()
	answer, err := http.Get(p.url + "/api/v1/query?" + url.Values{"query": {expr}}.Encode())
	if err != nil {
		return nil // it is not up yet
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode == http.StatusServiceUnavailable {
		return nil
	}
	var got struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(data, &got); err != nil || got.Status != "success" {
		p.t.Fatalf("%s: %s %v: %s", expr, answer.Status, err, data)
	}
	out := map[string]float64{}
	for _, r := range got.Data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			p.t.Fatalf("%s: %v", expr, err)
		}
		out[fmt.Sprint(r.Metric)] = v
	}
	return out
}

// eventually asks again and again, for as long as a hang would take to be one.
func eventually(t *testing.T, what func() string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what())
		}
	}
}

// dashboardExpressions are those of the panels, as Grafana would ask for them: one session, rates over some scrapes.
func dashboardExpressions(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(tree.Read(t, "scripts/grafana/daqiri.json")), &board); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			out[x.Expr] = p.Title
		}
	}
	if len(out) < 20 {
		t.Fatalf("%d expressions in the dashboard", len(out))
	}
	return out
}

// Without a device, and without a kernel that drops, these have no values.
var ofDevices = regexp.MustCompile(`daqiri_nic_|daqiri_kernel_dropped`)

// A real Prometheus reads a running program: promtool has nothing against what the endpoint shows, every panel of the
// dashboard has data, and what Prometheus has when nothing moves any more is what the summary reports.
func TestPrometheus(t *testing.T) {
	harness.Need(t, "prometheus")
	program, err := exec.LookPath("daqiri-run")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.lua"), []byte(prometheusScript), 0o644); err != nil {
		t.Fatal(err)
	}
	udp := harness.FreeAddress(t)
	_, port, _ := net.SplitHostPort(udp)
	cmd, out, stderr := harness.StartReady(t, dir, program, "--metrics", "127.0.0.1:0", "--summary-json", "s.json", "m.lua", "--port", port)
	endpoint := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/metrics`).FindStringSubmatch(stderr.String())
	server := startPrometheus(t, endpoint[1])

	peer, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	left := dashboardExpressions(t)
	maps.DeleteFunc(left, func(expr, _ string) bool { return ofDevices.MatchString(expr) })
	filled := strings.NewReplacer("$session", ".*", "$__rate_interval", "10s")
	eventually(t, func() string { return fmt.Sprintf("panels without data: %q", left) }, func() bool {
		_, _ = peer.Write([]byte("hello"))
		maps.DeleteFunc(left, func(expr, _ string) bool { return len(server.query(filled.Replace(expr))) > 0 })
		return len(left) == 0
	})
	checkMetrics(t, endpoint[0])

	if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	quiet := make([]byte, len("quiet\n"))
	if _, err := io.ReadFull(out, quiet); err != nil || string(quiet) != "quiet\n" {
		t.Fatalf("%q, %v\n%s", quiet, err, stderr.String())
	}
	families := scrapeMetrics(t, endpoint[0])
	totals := map[string]float64{} // by the query that sums them up
	for _, name := range []string{"daqiri_rx_packets_total", "daqiri_source_packets_total", "daqiri_source_missing_total", "daqiri_stage_out_packets_total"} {
		queue := ""
		for _, m := range families[name].GetMetric() {
			all := !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == "daqiri_queue_id" && l.GetValue() != "all" })
			if all {
				totals[name] += m.GetCounter().GetValue()
			}
			if name == "daqiri_rx_packets_total" {
				queue = `{daqiri_queue_id="all"}`
			}
		}
		if want, got := totals[name], 0.0; want > 0 {
			eventually(t, func() string { return fmt.Sprintf("%s: Prometheus has %v, the endpoint %v", name, got, want) }, func() bool {
				got = server.query("sum(" + name + queue + ")")["map[]"]
				return got == want
			})
		} else {
			t.Errorf("%s: nothing", name)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	checkTotals(t, filepath.Join(dir, "s.json"), totals)
}

// checkMetrics lets promtool judge what the endpoint shows.
func checkMetrics(t *testing.T, url string) {
	t.Helper()
	promtool, err := require.Tool("promtool")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if output, err := check.CombinedOutput(); err != nil || len(bytes.TrimSpace(output)) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, output)
	}
}

// checkTotals compares with the ledgers of the sessions at the end.
func checkTotals(t *testing.T, file string, totals map[string]float64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Sessions []struct {
			Ledger struct {
				Lines []struct {
					Kind    string
					In, Out uint64
					Extra   map[string]uint64
					Sources []struct{ Packets, Missing uint64 }
				}
			}
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, s := range report.Sessions {
		for _, l := range s.Ledger.Lines {
			switch l.Kind {
			case "rx":
				sums["daqiri_rx_packets_total"] += float64(l.In)
			case "tx", "wire":
			default:
				sums["daqiri_stage_out_packets_total"] += float64(l.Out)
			}
			for _, x := range l.Sources {
				sums["daqiri_source_packets_total"] += float64(x.Packets)
				sums["daqiri_source_missing_total"] += float64(x.Missing)
			}
		}
	}
	for name, want := range sums {
		if totals[name] != want {
			t.Errorf("%s: %v, the summary's lines have %v", name, totals[name], want)
		}
	}
}
