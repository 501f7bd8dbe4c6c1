package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// pageScript loses packets on the wire, and has a handler whose name would be a tag. It runs for 2.5 s, or so long after a file
// "watched" is there when it is asked to wait for one.
const pageScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ wait = false }
local s = daqiri.open(nil, { name = "<b>bold</b>", set = { loopback = { mode = "sw", loss = 0.1, seed = 3 } } })
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local count = s:count{ name = "a<i>b" }
s:pipe(rx, count)
rx:on_burst(function() end)
tx:pace{ pps = 5000 }
tx:transmit{ template = tx:template{ payload_bytes = 100 } }
s:threshold("loop0.wire.dropped == 0")
if args.wait then
  local look
  look = s:every(0.05, function()
    local f = io.open("watched")
    if not f then return end
    f:close()
    look:cancel()
    s:after(2.5, function() s:stop("watched") end)
  end)
end
s:run{ seconds = args.wait and 60 or 2.5 }
`

// inBrowser is the document that headless Chromium has made of a page, once it has nothing to load any more.
func inBrowser(t *testing.T, url string) string {
	t.Helper()
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=1000",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--dump-dom", url)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.String())
	}
	return out.String()
}

// pageRun starts the script; end waits for it and gives its ledger, line by line.
func pageRun(t *testing.T, wait bool, flags ...string) (out *harness.Buffer, dir string, end func() map[string][2]uint64) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(pageScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append(flags, "--summary", "none", "--summary-json", "sum.json", "x.lua", fmt.Sprintf("--wait=%t", wait))...)
	cmd.Dir, out = dir, &harness.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return out, dir, func() map[string][2]uint64 {
		t.Helper()
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
			t.Fatalf("exit code %d, want 5 for the threshold:\n%s", cmd.ProcessState.ExitCode(), out.String())
		}
		text, err := os.ReadFile(filepath.Join(dir, "sum.json"))
		if err != nil {
			t.Fatal(err)
		}
		var sum struct {
			Sessions []struct {
				Ledger struct {
					Lines []struct {
						Kind, Name string
						In, Out    uint64
					}
				}
			}
		}
		if err := json.Unmarshal(text, &sum); err != nil {
			t.Fatal(err)
		}
		lines := map[string][2]uint64{}
		for _, l := range sum.Sessions[0].Ledger.Lines {
			lines[l.Kind+" "+l.Name] = [2]uint64{l.In, l.Out}
		}
		return lines
	}
}

// checkPage compares a page in the browser with the ledger.
func checkPage(t *testing.T, dom string, lines map[string][2]uint64) {
	t.Helper()
	digits := func(n uint64) string {
		text := fmt.Sprint(n)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	}
	for line, title := range map[string]string{"rx loop0": "loop0.rx.0", "tx loop0": "loop0.tx.0", "stage a<i>b": "a&lt;i&gt;b"} {
		n, ok := lines[line]
		want := fmt.Sprintf("<td>%s</td><td>%s</td><td>%s</td>", title, digits(n[0]), digits(n[1]))
		if !ok || n[0] == 0 || !strings.Contains(dom, want) {
			t.Errorf("the page lacks %s: %v", want, lines)
		}
	}
	if n := strings.Count(dom, "<svg"); n < 3 {
		t.Errorf("%d charts", n)
	}
	for _, want := range []string{"wire_loss", "FAIL", "Dropped packets", "&lt;b&gt;bold&lt;/b&gt;", "<path"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(dom, "<b>bold") || strings.Contains(dom, "a<i>b") {
		t.Error("a name became a tag")
	}
	for _, m := range outside.FindAllString(dom, -1) {
		if !strings.Contains(m, "www.w3.org") { // names of XML vocabularies
			t.Errorf("the page asks for something elsewhere: %s", m)
		}
	}
}

var outside = regexp.MustCompile(`(?:src|href)="?[^#"][^" >]*|https?://[^"'< ]*`)

// TestReportPage: the file of --report shows in a browser without network what the ledger reports.
func TestReportPage(t *testing.T) {
	harness.Need(t, "chromium")
	_, dir, end := pageRun(t, false, "--report", "run.html")
	lines := end()
	checkPage(t, inBrowser(t, "file://"+filepath.Join(dir, "run.html")), lines)
}

// watched is the address of a proxy before the page, which makes the file "watched" when a browser takes the page's events: it may be
// slow to start.
func watched(t *testing.T, page, dir string) string {
	t.Helper()
	to, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			if err := os.WriteFile(filepath.Join(dir, "watched"), nil, 0o644); err != nil {
				t.Error(err)
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestWebPage: --web sends the run as it continues to a browser, which at its end shows the last figures; nothing can be changed there.
func TestWebPage(t *testing.T) {
	harness.Need(t, "chromium")
	out, dir, end := pageRun(t, true, "--web", "127.0.0.1:0")
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	harness.Until(t, "address", func() bool { return at.MatchString(out.String()) })
	page := at.FindString(out.String())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		req, _ := http.NewRequest(method, page, nil)
		if answer, err := http.DefaultClient.Do(req); err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %v, %v", method, answer, err)
		}
	}
	// A viewer that reads nothing harms no one.
	silent, err := http.Get(page + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Body.Close()
	dom := inBrowser(t, watched(t, page, dir)) // it returns when the events have ended
	lines := end()
	checkPage(t, dom, lines)
	if !strings.Contains(dom, "the run has ended") {
		t.Error("the page does not say that the run has ended")
	}
	rest, _ := io.ReadAll(silent.Body)
	if n := strings.Count(string(rest), "data: \""); n < 2 {
		t.Errorf("%d events in %v", n, 2500*time.Millisecond)
	}
}

// TestReportOfFailure reads the page and the summary of a run whose script failed, whose writer did, and of one that never had a session.
func TestReportOfFailure(t *testing.T) {
	program := harness.Built(t)
	for name, c := range map[string]struct {
		script, says string
		code         int
	}{
		"script":     {`local s = require("daqiri").open() s:run{ seconds = 0.01 } error("<b>of the script</b>")`, "&lt;b&gt;of the script&lt;/b&gt;", 1},
		"no session": {`error "before any session"`, "before any session", 1},
		"writer": {`local s = require("daqiri").open() local tx = s:tx_queue("loop0")
			s:pipe(s:rx_queue("loop0"), s:write_pcap{ name = "disk", quota = 100 })
			tx:transmit{ template = tx:template{ payload_bytes = 100 }, count = 10 }
			s:run{ packets = 10 }`, "quota is used up", 6},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(c.script), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "--summary", "none", "--report", "x.html", "--summary-json", "x.json", "x.lua")
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		page, err := os.ReadFile(filepath.Join(dir, "x.html"))
		if code := cmd.ProcessState.ExitCode(); code != c.code || err != nil || !strings.Contains(string(page), c.says) {
			t.Errorf("%s: exit code %d, want %d; %v\n%s", name, code, c.code, err, out)
		}
		var found struct{ Errors []string }
		text, err := os.ReadFile(filepath.Join(dir, "x.json"))
		if err == nil {
			err = json.Unmarshal(text, &found)
		}
		if err != nil || (len(found.Errors) > 0) != (c.code == 1) {
			t.Errorf("%s: the summary has the errors %q: %v", name, found.Errors, err)
		}
	}
}
