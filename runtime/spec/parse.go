package spec

import (
	"fmt"
	"io"
	"os"

	_ "embed" // default.yaml

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Options modifies how a configuration is parsed.
type Options struct {
	Set     []Override   // applied in order, before the check
	Engine  string       // engine of every interface; usually "loop"
	Sources []SourceFile // captures that replace raw interfaces
	Memory  string       // "host": device and host_pinned regions become host regions

	// Verbs reports whether engine ibverbs can serve a PCI address, of an interface without an engine; nil: it can serve none.
	Verbs func(address string) bool
}

// maxFile protects memory against a wrong path, such as a capture or a device.
const maxFile = 16 << 20

//go:embed default.yaml
var defaultYAML string

// Default returns the YAML text of the session opened by daqiri.open() without arguments.
func Default() string { return defaultYAML }

// ParseFile parses a configuration file. It returns the configuration, warnings, and errors as an *Errors; the configuration is nil if there are
// errors.
func ParseFile(path string, opts Options) (*Config, []Issue, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	return ParseText(path, text, opts)
}

// ReadFile returns the text of a configuration file.
func ReadFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("configuration %s: larger than %d MiB", path, maxFile>>20)
	}
	return string(text), nil
}

// ParseText parses a configuration from YAML text; name identifies the text in positions.
func ParseText(name, text string, opts Options) (*Config, []Issue, error) {
	p := &parser{opts: opts}
	return p.run(name, p.readYAML(name, []byte(text)))
}

// ParseTable parses a configuration from decoded values, as converted from a Lua table: map[string]any, []any, string, bool, float64, int. Positions
// have paths only.
func ParseTable(v any, opts Options) (*Config, []Issue, error) {
	p := &parser{opts: opts}
	return p.run("table", p.fromValue(v, Source{Pos: Pos{File: "table"}}, 0))
}

func (p *parser) run(name string, root *node) (*Config, []Issue, error) {
	var cfg *Config
	if m := p.opts.Memory; m != "" && m != schema.KindHost {
		p.errorf(Source{Pos: Pos{File: "--memory " + m}}, "not supported, only %s is", schema.KindHost)
	}
	if v, ok := p.root(root); ok {
		for _, o := range p.opts.Set {
			p.override(root, v.n, o)
		}
		cfg = p.config(v)
		cfg.File, cfg.written = name, root
		if v.n != root {
			cfg.Extra = extra(root)
		}
		p.check(cfg)
	}
	sortIssues(p.warnings)
	if len(p.issues) > 0 {
		sortIssues(p.issues)
		return nil, p.warnings, &Errors{p.issues}
	}
	return cfg, p.warnings, nil
}

// root returns the configuration of a document: the map below daqiri: cfg:, or the document itself.
func (p *parser) root(n *node) (value, bool) {
	at := Source{Pos: n.pos}
	switch n.kind {
	case kindBroken:
		return value{}, false
	case kindNull, kindEmpty:
		p.errorf(at, "the configuration is empty: expected daqiri: with cfg: below it")
		return value{}, false
	case kindTable:
	default:
		p.errorf(at, "%s where a map with the key daqiri is expected", n.describe())
		return value{}, false
	}
	if n.get("daqiri") != nil {
		outer := object{Source: n.source(n.pos, ""), p: p, n: n, sec: schema.DocumentSection}
		d := outer.child("daqiri")
		v, _, ok := d.find("cfg", schema.TypeMap)
		d.end()
		ok = ok && p.object(v).ok()
		v.Path = "" // paths are relative to the configuration
		return v, ok
	}
	for _, k := range schema.ConfigSection.Names() {
		if n.get(k) != nil {
			return value{at, n, schema.DaqiriSection.Key("cfg")}, true
		}
	}
	for _, f := range n.fields {
		if suggest.Nearest(f.name, []string{"daqiri"}) != "" {
			p.errorf(Source{Pos: f.pos, Path: f.name}, `unknown key; did you mean "daqiri"?`)
			return value{}, false
		}
	}
	p.errorf(at, "no configuration here: expected daqiri: with cfg: below it")
	return value{}, false
}

func extra(root *node) map[string]any {
	m := map[string]any{}
	for _, f := range root.fields {
		if f.name != "daqiri" {
			m[f.name] = f.val.value()
		}
	}
	return m
}
