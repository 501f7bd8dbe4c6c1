package format

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
)

// Keys of the tables that declare formats, fields, parts and lists.
var (
	formatKeys = []string{"data", "document", "endian", "ethertype", "layer", "lsb0", "name", "payload", "samples", "sequence", "struct", "title", "udp_port", "vectors", "where"}
	fieldKeys  = []string{"at", "base", "bits", "const", "doc", "endian", "is", "offset", "reserved", "scale", "signed", "unit", "values", "when"}
	partKeys   = []string{"when"}
	seqKeys    = []string{"per", "place"}
	listKeys   = []string{"count", "doc", "items", "key", "list", "match", "when"}
)

// declaration converts a Lua table to a format.Spec.
type declaration struct {
	spec   format.Spec
	little bool
	lsb0   lua.LValue // true: bits count from the least significant one of a byte, false: from the most significant one; nil: by byte order
}

// declare reads the table; at gives the source lines of its parts.
func declare(t *lua.LTable, file string, at *tableLines) (format.Spec, error) {
	d := &declaration{spec: format.Spec{File: file, Line: at.line()}}
	err := d.head(t)
	if err != nil {
		return d.spec, err
	}
	codes, err := d.structRows(t)
	for i := 1; i <= t.Len() && err == nil; i++ {
		var r format.Row
		here := at.row(i)
		switch v := t.RawGetInt(i).(type) {
		case lua.LString:
			r, err = d.named(&codes, string(v), here)
		case *lua.LTable:
			r, err = d.row(v, here, &codes)
		default:
			err = d.errorf(format.Row{Line: here.line()}, "element %d: a field, { NAME, BITS }, expected, got %s", i, row.Describe(v))
		}
		d.spec.Rows = append(d.spec.Rows, r)
	}
	if err == nil && len(codes) > 0 && slices.ContainsFunc(codes, func(r format.Row) bool { return !r.Reserved }) {
		err = d.errorf(format.Row{}, "struct has more fields than there are names")
	}
	d.spec.Rows = append(d.spec.Rows, codes...)
	if err == nil && d.lsb0 == lua.LNil {
		err = d.mixed()
	}
	return d.spec, err
}

func (d *declaration) errorf(r format.Row, text string, args ...any) error {
	line := r.Line
	if line == 0 {
		line = d.spec.Line
	}
	return &format.Error{File: d.spec.File, Format: d.spec.Name, Field: r.Name, Line: line, Msg: fmt.Sprintf(text, args...)}
}

// strange returns the first key of the table, in sorted order, that is not in known.
func strange(t *lua.LTable, known []string) string {
	var odd []string
	t.ForEach(func(k, _ lua.LValue) {
		if s, ok := k.(lua.LString); ok && !slices.Contains(known, string(s)) {
			odd = append(odd, string(s))
		} else if _, number := k.(lua.LNumber); !ok && !number {
			odd = append(odd, k.String())
		}
	})
	slices.Sort(odd)
	if len(odd) == 0 {
		return ""
	}
	return row.Unknown("key", odd[0], known)
}

// texts reads string values of a table.
func (d *declaration) texts(r format.Row, t *lua.LTable, keys map[string]*string) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch v := t.RawGetString(key).(type) {
		case *lua.LNilType:
		case lua.LString:
			*keys[key] = string(v)
		default:
			return d.errorf(r, "%s: a text expected, got %s", key, row.Describe(v))
		}
	}
	return nil
}

func (d *declaration) head(t *lua.LTable) error {
	s := &d.spec
	endian := ""
	if name, ok := t.RawGetString("name").(lua.LString); ok {
		s.Name = string(name)
	}
	if odd := strange(t, formatKeys); odd != "" {
		return d.errorf(format.Row{}, "%s", odd)
	}
	if err := d.texts(format.Row{}, t, map[string]*string{"name": &s.Name, "title": &s.Title, "document": &s.Document, "layer": &s.Layer,
		"where": &s.Where, "data": &s.Data, "payload": &s.Payload, "endian": &endian}); err != nil {
		return err
	}
	if err := d.sequence(t.RawGetString("sequence")); err != nil {
		return err
	}
	if err := d.samples(t.RawGetString("samples")); err != nil {
		return err
	}
	for key, to := range map[string]*int{"udp_port": &s.UDPPort, "ethertype": &s.Ethertype} {
		if v := t.RawGetString(key); v != lua.LNil {
			n, err := row.WholeNumber(v, 1, 0xffff)
			if err != nil {
				return d.errorf(format.Row{}, "%s: %v", key, err)
			}
			*to = int(n)
		}
	}
	d.lsb0 = t.RawGetString("lsb0")
	if _, ok := d.lsb0.(lua.LBool); !ok && d.lsb0 != lua.LNil {
		return d.errorf(format.Row{}, "lsb0: true or false expected, got %s", row.Describe(d.lsb0))
	}
	return d.endian(format.Row{}, endian, &d.little)
}

// sequence reads FIELD, or { FIELD, per = { FIELD, ... }, place = OPTIONS }.
func (d *declaration) sequence(v lua.LValue) error {
	s, none := &d.spec, format.Row{}
	t, ok := v.(*lua.LTable)
	if name, text := v.(lua.LString); text || v == lua.LNil {
		s.Sequence = string(name)
		return nil
	} else if !ok {
		return d.errorf(none, "sequence: a field's name, or { FIELD, per = { FIELD, … } }, expected, got %s", row.Describe(v))
	}
	if odd := strange(t, seqKeys); odd != "" {
		return d.errorf(none, "sequence: %s", odd)
	}
	name, ok := t.RawGetInt(1).(lua.LString)
	per, isList := t.RawGetString("per").(*lua.LTable)
	if !ok || t.Len() != 1 || !isList || per.Len() == 0 {
		return d.errorf(none, "sequence: a field's name, or { FIELD, per = { FIELD, … } }, expected")
	}
	s.Sequence = string(name)
	for i := 1; i <= per.Len(); i++ {
		field, ok := per.RawGetInt(i).(lua.LString)
		if !ok {
			return d.errorf(none, "sequence: per: a field's name expected, got %s", row.Describe(per.RawGetInt(i)))
		}
		s.Per = append(s.Per, string(field))
	}
	return d.texts(none, t, map[string]*string{"place": &s.Place})
}

func (d *declaration) endian(r format.Row, text string, little *bool) error {
	switch text {
	case "":
	case "big":
		*little = false
	case "little":
		*little = true
	default:
		return d.errorf(r, "endian: '%s' is neither big nor little", text)
	}
	return nil
}

// structRows returns the rows of the struct string, without names.
func (d *declaration) structRows(t *lua.LTable) ([]format.Row, error) {
	v := t.RawGetString("struct")
	text, ok := v.(lua.LString)
	switch {
	case v == lua.LNil:
		return nil, nil
	case !ok:
		return nil, d.errorf(format.Row{}, "struct: a text such as \">IBBH\" expected, got %s", row.Describe(v))
	}
	rows, err := format.ParseStruct(string(text))
	if err != nil {
		return nil, d.errorf(format.Row{}, "struct: %v", err)
	}
	return rows, nil
}

// named returns the next row of the struct string, with its name.
func (d *declaration) named(codes *[]format.Row, name string, at *tableLines) (format.Row, error) {
	r := format.Row{Name: name, Line: at.line()}
	for len(*codes) > 0 && (*codes)[0].Reserved {
		d.spec.Rows = append(d.spec.Rows, (*codes)[0])
		*codes = (*codes)[1:]
	}
	if len(*codes) == 0 {
		return r, d.errorf(r, "no width: a field is { \"%s\", BITS }, or struct has its width", name)
	}
	next := (*codes)[0]
	*codes = (*codes)[1:]
	next.Name, next.Line = name, r.Line
	return next, nil
}

// row reads { NAME, BITS, DOC, ... }, { reserved = BITS }, { when = ..., rows ... } or { list = NAME, ... }.
func (d *declaration) row(t *lua.LTable, at *tableLines, codes *[]format.Row) (r format.Row, err error) {
	r.Line = at.line()
	_, inner := t.RawGetInt(1).(*lua.LTable)
	switch {
	case t.RawGetString("list") != lua.LNil:
		return d.list(t, at)
	case inner:
		r.Group = true
		if odd := strange(t, partKeys); odd != "" {
			return r, d.errorf(r, "%s of a part, { when = …, {…} }", odd)
		}
		if err = d.texts(r, t, map[string]*string{"when": &r.When}); err != nil {
			return r, err
		}
		r.Rows, err = d.inner(r, t, at)
		return r, err
	}
	return d.field(r, t, codes)
}

func (d *declaration) inner(r format.Row, t *lua.LTable, at *tableLines) (rows []format.Row, err error) {
	for i := 1; i <= t.Len(); i++ {
		in, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok {
			return nil, d.errorf(format.Row{Line: at.row(i).line()}, "a field, { NAME, BITS }, expected, got %s", row.Describe(t.RawGetInt(i)))
		}
		x, err := d.row(in, at.row(i), nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, x)
	}
	return rows, nil
}

func (d *declaration) field(r format.Row, t *lua.LTable, codes *[]format.Row) (format.Row, error) {
	if name, ok := t.RawGetInt(1).(lua.LString); ok {
		r.Name = string(name)
	}
	r.Little = d.little
	second, doc := t.RawGetInt(2), 3
	switch reserved := t.RawGetString("reserved"); {
	case reserved != lua.LNil && r.Name == "":
		second, r.Reserved = reserved, true
	case r.Name == "":
		return r, d.errorf(r, "a name expected first, got %s: a field is { NAME, BITS }", row.Describe(t.RawGetInt(1)))
	case codes != nil && len(*codes) > 0:
		next, err := d.named(codes, r.Name, &tableLines{at: r.Line})
		if err != nil {
			return r, err
		}
		r, second, doc = next, nil, 2
	}
	if odd := strange(t, fieldKeys); odd != "" {
		return r, d.errorf(r, "%s", odd)
	}
	if second != nil {
		if err := d.width(&r, second); err != nil {
			return r, err
		}
	}
	if text, ok := t.RawGetInt(doc).(lua.LString); ok {
		r.Doc = string(text)
	}
	return r, d.attributes(&r, t)
}

// kinds are the field types with a fixed width.
var kinds = map[string]format.Row{"mac": {Bits: 48, Kind: format.MAC}, "ipv4": {Bits: 32, Kind: format.IPv4}, "ipv6": {Bits: 128, Kind: format.IPv6}}

// width reads a number of bits, or a type: "u16", "i32le", "f64", "bytes6", "mac".
func (d *declaration) width(r *format.Row, v lua.LValue) error {
	text, ok := v.(lua.LString)
	if !ok {
		n, err := row.WholeNumber(v, 1, 1<<20)
		if err != nil {
			return d.errorf(*r, "width: %v", err)
		}
		r.Bits = int(n)
		if d.lsb0 != lua.LNil && n%8 != 0 {
			r.Little = d.lsb0 == lua.LTrue
		}
		return nil
	}
	if k, ok := kinds[string(text)]; ok {
		r.Bits, r.Kind = k.Bits, k.Kind
		return nil
	}
	name, little := string(text), r.Little
	if cut, ok := strings.CutSuffix(name, "le"); ok {
		name, little = cut, true
	} else if cut, ok := strings.CutSuffix(name, "be"); ok {
		name, little = cut, false
	}
	letters := strings.TrimRight(name, "0123456789")
	bits, err := strconv.Atoi(name[len(letters):])
	kind, known := map[string]format.Kind{"u": format.Unsigned, "i": format.Signed, "f": format.Float, "bytes": format.Bytes}[letters]
	if err != nil || !known || bits < 1 || bits > 1<<16 {
		return d.errorf(*r, "width '%s': bits, or one of u1 to u64, i2 to i64, f32, f64 (also with le or be), bytesN, mac, ipv4, ipv6", string(text))
	}
	if kind == format.Bytes {
		bits *= 8
	}
	r.Bits, r.Kind, r.Little = bits, kind, little
	return nil
}

func (d *declaration) attributes(r *format.Row, t *lua.LTable) error {
	endian, base := "", "dec"
	err := d.texts(*r, t, map[string]*string{"base": &base, "doc": &r.Doc, "is": &r.Is, "unit": &r.Unit, "when": &r.When, "endian": &endian})
	if err != nil {
		return err
	}
	if err := d.endian(*r, endian, &r.Little); err != nil {
		return err
	}
	if r.Hex = base == "hex"; !r.Hex && base != "dec" {
		return d.errorf(*r, "base: %q is not one of dec, hex", base)
	}
	switch v := t.RawGetString("at").(type) {
	case *lua.LNilType:
	case lua.LNumber, lua.LString:
		r.At = v.String()
	default:
		return d.errorf(*r, "at: bits, or a number as text, expected, got %s", row.Describe(v))
	}
	if v := t.RawGetString("signed"); v == lua.LTrue {
		r.Kind = format.Signed
	} else if v != lua.LNil && v != lua.LFalse {
		return d.errorf(*r, "signed: true or false expected, got %s", row.Describe(v))
	}
	for key, to := range map[string]*float64{"scale": &r.Scale, "offset": &r.Offset} {
		switch v := t.RawGetString(key).(type) {
		case *lua.LNilType:
		case lua.LNumber:
			if *to = float64(v); key == "scale" && v == 0 {
				return d.errorf(*r, "scale: it is 0, so every number would be the same")
			}
		default:
			return d.errorf(*r, "%s: a number expected, got %s", key, row.Describe(v))
		}
	}
	if t.RawGetString("unit") == lua.LString("") {
		return d.errorf(*r, "unit: it is empty")
	}
	if v := t.RawGetString("const"); v != lua.LNil {
		raw, err := rawNumber(v, *r)
		if err != nil {
			return d.errorf(*r, "const: %v", err)
		}
		r.Const = &raw
	}
	if r.BitNames, err = NamedNumbers(t.RawGetString("bits")); err != nil {
		return d.errorf(*r, "bits: %v", err)
	}
	return d.values(r, t.RawGetString("values"))
}

// values reads { [4] = "context" }.
func (d *declaration) values(r *format.Row, v lua.LValue) (err error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		if v != lua.LNil {
			err = d.errorf(*r, "values: a table of names by number expected, got %s", row.Describe(v))
		}
		return err
	}
	t.ForEach(func(k, v lua.LValue) {
		name, ok := v.(lua.LString)
		n, bad := row.WholeNumber(k, math.MinInt32, row.MaxInt)
		if (!ok || bad != nil) && err == nil {
			err = d.errorf(*r, "values: [%s] = %s: a number and a name expected", k, v)
		}
		r.Values = append(r.Values, format.Value{Number: uint64(n), Name: string(name)})
	})
	slices.SortFunc(r.Values, func(a, b format.Value) int { return int(int64(a.Number) - int64(b.Number)) })
	return err
}

// list reads { list = NAME, count = ..., {...}, ..., key = ..., match = {...}, items = {...} }.
func (d *declaration) list(t *lua.LTable, at *tableLines) (r format.Row, err error) {
	r.Line = at.line()
	if odd := strange(t, listKeys); odd != "" {
		return r, d.errorf(r, "%s of a list", odd)
	}
	if err = d.texts(r, t, map[string]*string{"list": &r.List, "count": &r.Count, "key": &r.Key, "when": &r.When, "doc": &r.Doc}); err != nil {
		return r, err
	}
	if r.Rows, err = d.inner(r, t, at); err != nil {
		return r, err
	}
	r.Match = map[string]uint64{}
	items, err := NamedNumbers(t.RawGetString("match"))
	for _, v := range items {
		r.Match[v.Name] = v.Number
	}
	if err == nil {
		r.Items, err = NamedNumbers(t.RawGetString("items"))
	}
	if err != nil {
		return r, d.errorf(r, "match and items: %v", err)
	}
	return r, nil
}

// NamedNumbers reads { name = number } and returns the values sorted by number.
func NamedNumbers(v lua.LValue) (list []format.Value, err error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		if v != lua.LNil {
			err = fmt.Errorf("a table of numbers by name expected, got %s", row.Describe(v))
		}
		return nil, err
	}
	t.ForEach(func(k, v lua.LValue) {
		n, bad := row.Unsigned(v, 64)
		name, ok := k.(lua.LString)
		if (bad != nil || !ok) && err == nil {
			err = fmt.Errorf("%s = %s: a name and a whole number from 0 expected", k, row.Describe(v))
		}
		list = append(list, format.Value{Number: n, Name: string(name)})
	})
	slices.SortFunc(list, func(a, b format.Value) int {
		if a.Number != b.Number {
			return int(int64(a.Number) - int64(b.Number))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, err
}

// rawNumber converts the value of an integer field: a number, a u64, the name of a value, or an address as text.
func rawNumber(v lua.LValue, r format.Row) (uint64, error) {
	if s, ok := v.(lua.LString); ok {
		return rawText(string(s), r)
	}
	if n, ok := v.(lua.LNumber); ok && r.Kind == format.Signed && n < 0 {
		low := int64(math.MinInt64)
		if r.Bits < 64 {
			low = -1 << (r.Bits - 1)
		}
		i, err := row.WholeNumber(v, max(low, -row.MaxInt), row.MaxInt)
		return uint64(i), err
	}
	width := r.Bits
	if r.Kind == format.Signed {
		width--
	}
	return row.Unsigned(v, width)
}

func rawText(s string, r format.Row) (uint64, error) {
	var names []string
	for _, v := range r.Values {
		if v.Name == s {
			return v.Number, nil
		}
		names = append(names, v.Name)
	}
	switch r.Kind {
	case format.MAC:
		mac, err := ParseMAC(s)
		return binary.BigEndian.Uint64(append([]byte{0, 0}, mac[:]...)), err
	case format.IPv4:
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return 0, fmt.Errorf("%q is not an IPv4 address", s)
		}
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:])), nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && r.Kind == format.Signed && r.Bits == 64 {
		return uint64(n), nil // above 2^53
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("a number expected, got the string %q", row.Clip(s, 40))
	}
	return 0, fmt.Errorf("%s", row.Unknown("value", s, names))
}
