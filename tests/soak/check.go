package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// summary is what the rig reads of --summary-json.
type summary struct {
	Sessions []session `json:"sessions"`
}

type session struct {
	Name   string `json:"name"`
	Ledger struct {
		Lines []line `json:"lines"`
	} `json:"ledger"`
	Imbalance []string `json:"imbalance"`
	Files     []string `json:"files"`
}

// ownSession is the name of the session that the script opens from a table; those that it opens without one have another.
const ownSession = "table"

// own is the session under load, not one of those that come and go beside it.
func (s *summary) own() *session {
	k := slices.IndexFunc(s.Sessions, func(x session) bool { return x.Name == ownSession })
	return &s.Sessions[max(k, 0)]
}

type line struct {
	Kind    string            `json:"kind"`
	Name    string            `json:"name"`
	In      uint64            `json:"in"`
	Out     uint64            `json:"out"`
	Held    uint64            `json:"held"`
	Dropped map[string]uint64 `json:"dropped"`
	Extra   map[string]uint64 `json:"extra"`
}

func (l *line) lost() (n uint64) {
	for _, d := range l.Dropped {
		n += d
	}
	return n
}

// result is what the script reports.
type result struct {
	Lives []life `json:"lives"`
	Error string `json:"error"`
	Free  int    `json:"free"`
	Of    int    `json:"of"`
}

// life is what was received of one sender.
type life struct {
	Life     int    `json:"life"`
	Received uint64 `json:"received"`
	Missing  uint64 `json:"missing"`
	Late     uint64 `json:"late"`
}

// check holds the packets' numbers, the ledger, the kernel and the process against each other. lost: datagrams that
// the kernel lost in the load's socket; left: what the process held when all senders had gone.
func (p *program) check(lost uint64, left usage) {
	var sum summary
	var res result
	for name, to := range map[string]any{"summary": &sum, "result": &res} {
		text, err := os.ReadFile(p.path(name))
		if err == nil {
			err = json.Unmarshal(fixLists(text), to)
		}
		if err != nil {
			p.wrong("%s: %v\n%s", name, err, p.output())
			return
		}
	}
	if (p.raises == "") != (res.Error == "") || !strings.Contains(res.Error, p.raises) {
		p.wrong("the script's error is %q, want %q", res.Error, p.raises)
	}
	if res.Of-res.Free > p.l.posted {
		p.wrong("%d of %d buffers are not back", res.Of-res.Free, res.Of)
	}
	p.closed(&sum)
	own := sum.own()
	lines := own.Ledger.Lines
	switch p.l.name {
	case "udp":
		p.checkUDP(lines, res.Lives, lost)
	case "tcp":
		p.checkTCP(lines, res.Lives)
	default:
		p.checkLoop(lines, res.Lives)
	}
	if p.l.name == "disk" {
		p.checkFile(lines, own.Files)
	}
	p.kept(left)
	p.r.count(p.l.name, "checked to the packet")
}

// fixLists makes lists of what JSON from Lua writes for empty ones.
func fixLists(text []byte) []byte {
	return []byte(strings.ReplaceAll(string(text), `"lives":{}`, `"lives":[]`))
}

// closed looks whether every account of every session adds up and holds nothing any more.
func (p *program) closed(sum *summary) {
	for _, s := range sum.Sessions {
		for _, bad := range s.Imbalance {
			p.wrong("the program reports: %s", bad)
		}
		for _, l := range s.Ledger.Lines {
			if l.In != l.Out+l.Held+l.lost() || l.Held != 0 {
				p.wrong("%s %s: in %d, out %d, held %d, dropped %v", l.Kind, l.Name, l.In, l.Out, l.Held, l.Dropped)
			}
		}
	}
}

// of sums lines of these kinds: what came out, and what was lost.
func of(lines []line, kinds string) (out, lost uint64) {
	for k := range lines {
		if l := &lines[k]; strings.Contains(kinds, l.Kind) {
			out, lost = out+l.Out, lost+l.lost()
		}
	}
	return out, lost
}

// numbers adds up what was received and what is missing between packets.
func (p *program) numbers(lives []life) (received, missing uint64) {
	for _, l := range lives {
		if l.Late != 0 {
			p.wrong("%d packets of sender %d came twice or out of order", l.Late, l.Life)
		}
		received, missing = received+l.Received, missing+l.Missing
	}
	return received, missing
}

func (p *program) checkLoop(lines []line, lives []life) {
	received, missing := p.numbers(lives)
	sent, _ := of(lines, "tx")
	_, lost := of(lines, "wire rx tap")
	if received+lost != sent || missing > lost {
		p.wrong("sent %d, received %d, of which %d are missing in between; the ledger has %d dropped", sent, received, missing, lost)
	}
}

func (p *program) checkUDP(lines []line, lives []life, lost uint64) {
	received, missing := p.numbers(lives)
	var least, most uint64
	for _, s := range p.senders {
		least, most = least+s.count.done.Load(), most+s.count.begun.Load()
	}
	var kernel uint64
	for _, l := range lines {
		kernel += l.Extra["kernel_dropped"]
	}
	if kernel != lost {
		p.wrong("the ledger reports that the kernel lost %d datagrams, the kernel reports %d", kernel, lost)
	}
	_, dropped := of(lines, "rx tap")
	before := p.beforeSocket()
	if all := received + dropped + lost; all+before < least || all > most {
		p.wrong("sent %d to %d, received %d, dropped %d, lost by the kernel %d in the socket and %d before it: %d are nowhere (%d missing between packets)",
			least, most, received, dropped, lost, before, int64(least-all), missing)
	}
}

// beforeSocket returns what loopback dropped since the program's start, of all who use it: on a machine that gets little
// time the kernel's backlog of a core overflows before any socket is looked up, so no socket counts it.
func (p *program) beforeSocket() uint64 {
	now, err := loopbackDropped()
	if err != nil {
		p.wrong("%v", err)
		return 0
	}
	return now - p.dropped
}

func (p *program) checkTCP(lines []line, lives []life) {
	_, missing := p.numbers(lives)
	_, dropped := of(lines, "rx tap")
	if missing > dropped {
		p.wrong("%d packets are missing in the middle of streams, %d were dropped", missing, dropped)
	}
	got := map[int]uint64{}
	for _, l := range lives {
		got[l.Life] = l.Received
	}
	for _, s := range p.senders {
		least, most := s.count.done.Load(), s.count.begun.Load()
		if s.cut {
			least = 0 // what was on its way is gone
		}
		if n := got[s.life]; n+dropped < least || n > most {
			p.wrong("sender %d sent %d to %d, received %d", s.life, least, most, n)
		}
	}
}

func (p *program) checkFile(lines []line, files []string) {
	var out, lost uint64
	for _, l := range lines {
		if l.Name == "disk" {
			out, lost = l.Out, l.lost()
		}
	}
	for _, file := range files {
		records, gaps, err := readPcap(filepath.Join(p.disk.dir, filepath.Base(file)))
		if err != nil {
			p.wrong("%s: %v", filepath.Base(file), err)
		}
		if records != out || gaps > lost {
			p.wrong("the file has %d packets with %d missing between them; the ledger has %d written and %d dropped", records, gaps, out, lost)
		}
	}
	if len(files) != 1 {
		p.wrong("%d files were written, want one", len(files))
	}
}

// kept compares what the process holds at the end with its beginning.
func (p *program) kept(left usage) {
	const threads, mib = 12, 1024 // threads that Go's runtime may add; KB
	const reporter = 4            // files of the crash reporter, started with the first session
	if left.files > p.watch.first.files+reporter {
		p.wrong("%d open files at the beginning, %d at the end", p.watch.first.files, left.files)
	}
	if left.threads > p.watch.first.threads+threads {
		p.wrong("%d threads at the beginning, %d at the end", p.watch.first.threads, left.threads)
	}
	if n := len(p.watch.rss); n > 0 {
		p.r.say(p.l.name, "ended: %d MB of memory, after %d s %d; %d open files, were %d; %d threads, were %d", left.rssKB/mib, n/12,
			p.watch.rss[n/3]/mib, left.files, p.watch.first.files, left.threads, p.watch.first.threads)
	}
	if kb, ok := p.watch.growth(); ok && kb > 16*mib {
		p.wrong("its memory grew by %d KB in the last third of its run", kb)
	}
}
