package look

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/host/live"
	"github.com/daqiri/daqiri-run/host/panels"
	"github.com/daqiri/daqiri-run/runtime/picture"
)

//go:embed page.html
var pageText string

var pageStart = template.Must(template.New("page").Parse(pageText))

// period is the time between two updates of a page, and that of the figures of a live stream.
const period = 500 * time.Millisecond

// Page shows the pictures of a source in browsers, while it is read and after.
type Page struct {
	server  *live.Server
	start   []byte // of the page; a script with the newest update follows
	newest  []byte // page with the newest figures
	packets uint64 // that the last update counted
	idle    int    // updates since then
	passed  uint64 // packets in the figures that browsers have
}

// update is what a page shows. Streams is nil if they are those of the update before.
type update struct {
	State, Words string
	Notes        []string
	Streams      []panels.Figures
}

// OpenPage serves the page of a source at HOST:PORT; without a host only on this machine.
func OpenPage(address, source string) (*Page, error) {
	var b bytes.Buffer
	if err := pageStart.Execute(&b, map[string]any{"Source": source, "Style": template.CSS(panels.Style), "Script": template.JS(panels.Script)}); err != nil {
		return nil, err
	}
	server, err := live.Listen(address)
	if err != nil {
		return nil, err
	}
	p := &Page{server: server, start: b.Bytes()}
	return p, p.send(update{State: "opening", Notes: []string{}}, true)
}

// URL returns the address of the page.
func (p *Page) URL() string { return p.server.URL() }

// Close ends the updates and the server.
func (p *Page) Close() { p.server.Close() }

// Show shows what was read so far, unless no browser shows the page. Read calls it as Options.Update.
func (p *Page) Show(r *Result) error {
	if p.idle++; r.Packets != p.packets {
		p.packets, p.idle = r.Packets, 0
	}
	if !p.server.Watched() {
		p.passed = 0 // a new viewer gets the figures
		return nil
	}
	passed := uint64(1)
	for _, s := range r.Streams {
		passed += s.Packets
	}
	whole := passed != p.passed
	p.passed = passed
	state := "reading"
	if r.live {
		state = "live"
	}
	if seconds := int(time.Duration(p.idle) * period / time.Second); r.live && seconds > 0 {
		state = fmt.Sprintf("live, no packets for %d s", seconds)
	}
	return p.show(r, state, whole)
}

// Complete shows all that was read.
func (p *Page) Complete(r *Result) error { return p.show(r, "complete", true) }

func (p *Page) show(r *Result, state string, whole bool) error {
	u := update{State: state, Words: fmt.Sprintf("%s, %s", picture.Counted(r.Packets, r.container), picture.Counted(uint64(len(r.Streams)), "stream")), Notes: append([]string{}, r.notes()...)}
	if r.Err != nil {
		u.Notes = append(u.Notes, "incomplete: "+r.Err.Error())
	}
	if whole {
		u.Streams = r.figures()
	}
	return p.send(u, whole)
}

// send sends an update. A page that is opened later gets it if it is whole.
func (p *Page) send(u update, whole bool) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if whole {
		p.newest = slices.Concat(p.start, []byte("<script>show("), text, []byte(");</script>\n</body>\n</html>\n"))
	}
	p.server.Send(p.newest, text)
	return nil
}

// figures returns the figures of all streams that have some, ordered by their values.
func (r *Result) figures() []panels.Figures {
	all := []panels.Figures{}
	for _, s := range slices.SortedFunc(slices.Values(r.Streams), func(a, b *Stream) int { return slices.Compare(a.values, b.values) }) {
		if s.Set == nil {
			continue
		}
		of := panels.Stream{Name: s.Name, Type: r.Type.String(), Window: r.Window.Title, Rate: r.Rate, Frequency: r.Frequency, Packets: s.Packets}
		if s.of.Type.Range().Bits > 0 {
			of.Unit = "codes"
		}
		if s.followed {
			of.Now = r.now()
		}
		all = append(all, panels.Of(s.Set, of))
	}
	return all
}

// now returns the time since the source was opened in ns.
func (r *Result) now() uint64 { return uint64(time.Since(r.opened)) }

// due reports whether it is time for an update.
func (r *Result) due() bool { return r.Update != nil && time.Since(r.updated) >= period }

// tick calls Update if it is due. A live source begins a period then.
func (r *Result) tick() error {
	if !r.due() {
		return nil
	}
	r.updated = time.Now()
	if r.live {
		for _, s := range r.Streams {
			s.settle()
		}
	}
	err := r.Update(r)
	for _, s := range r.Streams {
		if s.followed {
			s.Renew(r.now())
		}
	}
	return err
}

// fewest is the number of packets that show the distance of their numbers.
const fewest = 16

// settle passes on the packets that have been pending since the last call: a packet that is displaced further is too late.
func (s *Stream) settle() {
	for len(s.pending) > s.fresh && (s.Set != nil || len(s.pending) >= fewest) {
		s.first()
	}
	s.fresh = 0
}
