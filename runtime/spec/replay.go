package spec

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Replay configures the replay of a capture by an interface with the address pcap:FILE (an extension): with the captured gaps divided by Speed, at
// one of the rates, or as fast as possible if all three are 0.
type Replay struct {
	Source  `json:"-"`
	Speed   float64 `json:"speed"`              // 1: as captured; 0: at a rate, or as fast as possible
	RateBPS int64   `json:"rate_bps,omitempty"` // bits per second of frames, without FCS
	PPS     float64 `json:"pps,omitempty"`
	Loops   int64   `json:"loops"` // 0: unlimited
}

// replay reads the replay key.
func (p *parser) replay(o *object) *Replay {
	r := defaultReplay(o.Source)
	given := ""
	for _, key := range []string{"speed", "rate", "pps"} {
		if !o.Has(key) {
			continue
		}
		if given != "" {
			p.errorf(o.Key(key), "excludes %s: a capture has one pace", given)
		}
		given = key
	}
	if given != "" {
		r.Speed = 0
	}
	set := r.setters()
	for _, k := range schema.ReplaySection.Keys {
		v, ok := o.lookup(k.Name)
		if !ok {
			continue
		}
		text, ok := p.scalar(v)
		if !ok {
			continue
		}
		if k.Type == schema.TypeRate {
			text = v.n.withUnit(text, k.Unit)
		}
		if err := set[k.Name](text); err != nil {
			p.errorf(v.Source, "%v", OrNumber(err, k.Unit))
		}
	}
	o.end()
	return r
}

// defaultReplay returns the default settings.
func defaultReplay(at Source) *Replay {
	return &Replay{Source: at, Speed: float64(schema.DefaultOf[int](schema.ReplaySection.Key("speed"))), Loops: int64(schema.DefaultOf[int](schema.ReplaySection.Key("loops")))}
}

// setters returns the function that parses each key's value.
func (r *Replay) setters() map[string]func(text string) error {
	return map[string]func(string) error{"speed": r.setSpeed, "rate": r.setRate, "pps": r.setPPS, "loops": r.setLoops}
}

func positive(text, what string) (float64, error) {
	f, ok := parseFloat(text)
	if !ok || !(f > 0) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is not %s", text, what)
	}
	return f, nil
}

func (r *Replay) setSpeed(text string) (err error) {
	if text == schema.SpeedMax {
		r.Speed = 0
		return nil
	}
	r.Speed, err = positive(text, "a factor above 0, or max")
	return err
}

func (r *Replay) setRate(text string) (err error) {
	if r.RateBPS, err = ParseRate(text); err == nil && r.RateBPS == 0 {
		err = fmt.Errorf("a rate of 0 replays nothing")
	}
	return err
}

func (r *Replay) setPPS(text string) (err error) {
	r.PPS, err = positive(text, "a number of packets per second above 0")
	return err
}

func (r *Replay) setLoops(text string) error {
	if text == schema.LoopsForever {
		r.Loops = 0
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of loops from 1 on, or forever", text)
	}
	r.Loops = n
	return nil
}

// SourceFile is a capture that replaces the traffic of interfaces, as given by --source.
type SourceFile struct {
	Interface string // empty: every receiving interface without one of its own
	File      string
	Replay    *Replay

	given bool // Replay is set explicitly
}

var sourceInterface = regexp.MustCompile(`^([A-Za-z0-9_.-]+)=(.+)$`)

// ParseSource parses [INTERFACE=]FILE[,speed=N|max][,rate=R][,pps=N][,loops=N|forever].
func ParseSource(arg string) (SourceFile, error) {
	s := SourceFile{File: arg, Replay: defaultReplay(Source{})}
	if m := sourceInterface.FindStringSubmatch(arg); m != nil {
		s.Interface, s.File = m[1], m[2]
	}
	set := s.Replay.setters()
	pace := ""
	for {
		at := strings.LastIndexByte(s.File, ',')
		key, value, ok := strings.Cut(s.File[at+1:], "=")
		fn := set[key]
		if at < 0 || !ok {
			break // a comma in the file's name
		}
		if near := suggest.Nearest(key, schema.ReplaySection.Names()); fn == nil && near != "" {
			return s, fmt.Errorf("%q: unknown key %s; did you mean %q?", arg, key, near)
		} else if fn == nil {
			break
		}
		s.given = true
		if err := fn(value); err != nil {
			return s, fmt.Errorf("%s: %w", key, err)
		}
		if key != "loops" {
			if pace != "" {
				return s, fmt.Errorf("%s excludes %s: a capture has one pace", key, pace)
			}
			if pace = key; key != "speed" {
				s.Replay.Speed = 0
			}
		}
		s.File = s.File[:at]
	}
	if s.File == "" {
		return s, fmt.Errorf("%q names no file", arg)
	}
	return s, nil
}

// replaceSources applies Options.Sources to the interfaces, with their replay settings or else those of the interface's replay key. All other
// interfaces only count sent packets.
func (p *parser) replaceSources(c *Config) {
	used := make([]bool, len(p.opts.Sources))
	piped := ""
	for _, i := range c.Interfaces {
		found := -1
		for n, s := range p.opts.Sources {
			if s.Interface == i.Name || s.Interface == "" && found < 0 && i.RX != nil {
				found = n
			}
		}
		if i.Socket() {
			p.datagramsOnly(i, i.Key("socket_config"), "--source")
		}
		switch {
		case found < 0 && i.RX != nil:
			p.errorf(i.Source, "interface %s receives, and no --source is for it: add --source %s=FILE", i.Name, i.Name)
		case found >= 0 && i.RX == nil:
			p.errorf(i.Source, "--source %s: the interface does not receive", i.Name)
		}
		how := i.Replay
		i.Address, i.engine, i.Replay = "", schema.EnginePCAP, nil
		if found >= 0 {
			if s := p.opts.Sources[found]; how == nil || s.given {
				how = s.Replay
			}
			used[found] = true
			if p.opts.Sources[found].File == "-" {
				if piped != "" {
					p.errorf(i.Source, "standard input is the capture of interface %s already: add --source %s=FILE", piped, i.Name)
				}
				piped = i.Name
			}
			i.Address, i.Replay = "pcap:"+p.opts.Sources[found].File, how
		}
	}
	for n, s := range p.opts.Sources {
		if used[n] {
			continue
		}
		at := Source{Pos: Pos{File: "--source"}}
		switch {
		case s.Interface == "":
			p.errorf(at, "no interface of %s is left to replay %s", c.File, s.File)
		case slices.Contains(c.interfaceNames(), s.Interface):
			p.errorf(at, "interface %s has two captures, %s is one of them: it replays one", s.Interface, s.File)
		default:
			p.errorf(at, "there is no interface %s%s", s.Interface, didYouMean(s.Interface, c.interfaceNames()))
		}
	}
}

// datagramsOnly reports an error if a stream endpoint is to replay a capture.
func (p *parser) datagramsOnly(i *Interface, at Source, what string) {
	if scheme := i.SocketConfig.Scheme(); scheme != SchemeUDP && scheme != "" {
		p.errorf(at, "%s replays datagrams, and interface %s is a %s endpoint: a capture does not answer", what, i.Name, scheme)
	}
}

func (c *Config) interfaceNames() []string {
	var names []string
	for _, i := range c.Interfaces {
		names = append(names, i.Name)
	}
	return names
}

// checkReplay checks an interface's replay key against its engine, and sets the default.
func (p *parser) checkReplay(i *Interface) {
	switch {
	case i.engine == schema.EnginePCAP && i.Replay == nil:
		i.Replay = defaultReplay(i.Source)
	case i.engine != schema.EnginePCAP && i.Replay != nil:
		p.errorf(i.Key("replay"), "belongs to interfaces with the address pcap:FILE; %s is served by engine %s", i.Name, i.engine)
	}
	if i.engine == schema.EnginePCAP && !strings.HasPrefix(i.Address, "pcap:") {
		p.errorf(i.Key("address"), "%q is not a capture address: engine pcap needs pcap:FILE", i.Address)
	}
	if i.TX != nil && i.engine == schema.EnginePCAP {
		p.errorf(i.TX.Source, "a pcap interface replays a capture and cannot transmit")
	}
}
