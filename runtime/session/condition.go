package session

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Compile-time checks that the grammar and the engine have the same values of bases and flags.
var (
	_ = [1]struct{}{}[expr.BaseStart-native.BaseStart]
	_ = [1]struct{}{}[expr.BaseMeta-native.BaseMeta]
	_ = [1]struct{}{}[expr.FieldLittleEndian-native.FieldLE]
	_ = [1]struct{}{}[expr.FieldSigned-native.FieldSigned]
	_ = [1]struct{}{}[unsafe.Sizeof(expr.Insn{})-unsafe.Sizeof(native.Insn{})]
)

// Fields resolves names of a format in addition to the common fields; nil: none.
type Fields interface {
	Field(name string) (Field, bool)
	Names() []string
}

// Condition selects the packets that a filter passes. Exactly one of Where, Match and Pcap is set.
type Condition struct {
	Where  string      // the text grammar: "udp_dst == 7148 and len > 64"
	Match  *spec.Match // the match table of flows
	Pcap   string      // libpcap's filter language: "udp port 7148"
	Fields Fields      // for Where
}

// Filter creates a stage that passes the packets for which a condition holds.
func (s *Session) Filter(name string, c Condition) (*Stage, error) {
	conf, layer, err := c.compile()
	if err != nil {
		if name == "" {
			name = "without a name"
		}
		return nil, fmt.Errorf("filter %s: %w", name, err)
	}
	return s.stage(name, KindFilter, layer, func(n string) (native.Stage, error) { return s.native.AddFilter(n, conf) })
}

func (c Condition) compile() (conf native.FilterConf, layer string, err error) {
	given := 0
	for _, set := range []bool{c.Where != "", c.Match != nil, c.Pcap != ""} {
		if set {
			given++
		}
	}
	switch {
	case given != 1:
		return conf, "", invalid("it takes one of where, match and pcap")
	case c.Match != nil:
		m, err := flow.NativeMatch(c.Match, nil)
		conf.Match = &m
		return conf, LayerFrame, err
	case c.Pcap != "":
		conf.CBPF, err = native.CompilePcap(c.Pcap, native.LinkEthernet)
		return conf, LayerFrame, err
	}
	conf.Insns, err = compileWhere(c.Where, c.Fields)
	return conf, "", err
}

// Selector is a compiled condition for Burst.Select and Burst.Count. It is safe for concurrent use.
type Selector struct{ prog *native.Prog }

// CompileSelector compiles a condition in the text grammar.
func CompileSelector(where string, fields Fields) (*Selector, error) {
	insns, err := compileWhere(where, fields)
	if err != nil {
		return nil, err
	}
	prog, err := native.NewProg(insns)
	if err != nil {
		return nil, fmt.Errorf("where %q: %w", where, err)
	}
	return &Selector{prog}, nil
}

// Number is a compiled number for Burst.Eval. Concurrent use is safe.
type Number struct {
	prog   *native.Prog
	Signed bool // values are in two's complement
}

// CompileNumber compiles a number over packet fields in the text grammar: "chan // 256".
func CompileNumber(text string, fields Fields) (*Number, error) {
	insns, signed, err := compileNumber(text, fields)
	if err != nil {
		return nil, err
	}
	prog, err := native.NewProg(insns)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &Number{prog, signed}, nil
}

func compileNumber(text string, fields Fields) (insns []native.Insn, signed bool, err error) {
	e, err := expr.Parse(text)
	if err != nil {
		return nil, false, fmt.Errorf("%q: %w", text, err)
	}
	code, signed, err := e.CompileNumber(resolver{fields})
	if err != nil {
		return nil, false, fmt.Errorf("%q: %w", text, err)
	}
	return nativeInsns(code), signed, nil
}

func compileWhere(where string, fields Fields) ([]native.Insn, error) {
	e, err := expr.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("where %q: %w", where, err)
	}
	prog, err := e.CompilePacket(resolver{fields})
	if err != nil {
		return nil, fmt.Errorf("where %q: %w", where, err)
	}
	return nativeInsns(prog), nil
}

func nativeInsns(prog expr.Program) []native.Insn {
	insns := make([]native.Insn, len(prog))
	for i, x := range prog {
		insns[i] = native.Insn{Op: uint8(x.Op), A: x.A, B: x.B, C: x.C, Imm: x.Imm}
	}
	return insns
}

// resolver resolves the fields of a format, then the common ones.
type resolver struct{ more Fields }

// Field resolves a field name.
func (r resolver) Field(name string) (expr.Field, bool) {
	var f Field
	ok := false
	if r.more != nil {
		f, ok = r.more.Field(name)
	}
	if !ok {
		f, ok = native.FieldNamed(name)
	}
	return expr.Field{
		Base: f.Base, Meta: f.Meta, Flags: f.Flags, Need: f.Need,
		BitWidth: f.BitWidth, BitOffset: f.BitOffset,
	}, ok
}

// deriver returns the Fields if they resolve computed names too, or nil.
func (r resolver) deriver() expr.Deriver {
	d, _ := r.more.(expr.Deriver)
	return d
}

// Derived resolves a computed number.
func (r resolver) Derived(name string) (expr.Derived, bool) {
	if d := r.deriver(); d != nil {
		return d.Derived(name)
	}
	return expr.Derived{}, false
}

// Constant resolves the name of a value.
func (r resolver) Constant(name string) (uint64, bool) {
	if d := r.deriver(); d != nil {
		return d.Constant(name)
	}
	return 0, false
}

// Names returns the names of all fields.
func (r resolver) Names() []string {
	names := native.FieldNames()
	if r.more != nil {
		names = slices.Concat(r.more.Names(), names)
	}
	return names
}
