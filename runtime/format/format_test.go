package format

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// everything has a field of every kind, optional groups, a list, and a field outside the header.
var everything = Spec{Name: "all", Payload: "size", Rows: []Row{
	{Name: "magic", Bits: 16, Const: number(0xabcd)},
	{Name: "a", Bits: 3}, {Name: "b", Bits: 1}, {Name: "c", Bits: 1}, {Reserved: true, Bits: 3},
	{Name: "size", Bits: 8, Is: "payload_bytes"},
	{Group: true, When: "b == 1", Rows: []Row{{Name: "i", Bits: 16, Kind: Signed}, {Name: "j", Bits: 13}, {Name: "k", Bits: 11, Kind: Signed}}},
	{Name: "n", Bits: 8},
	{List: "items", Count: "n", Key: "id", Match: map[string]uint64{"mode": 1}, Items: []Value{{1, "one"}, {2, "two"}},
		Rows: []Row{{Name: "mode", Bits: 1}, {Name: "id", Bits: 7}, {Name: "value", Bits: 24}}},
	{Name: "wide", Bits: 64, When: "c == 1"},
	{Name: "le", Bits: 32, Little: true}, {Name: "low", Bits: 5, Little: true}, {Name: "high", Bits: 19, Little: true},
	{Name: "f", Bits: 32, Kind: Float}, {Name: "d", Bits: 64, Kind: Float, Little: true}, {Name: "text", Bits: 40, Kind: Bytes},
	{Name: "who", Bits: 128, Kind: IPv6}, {Name: "mac", Bits: 48, Kind: MAC},
	{Name: "tail", Bits: 32, At: "(header_bytes + size) * 8", When: "a > 3"},
}}

func number(v uint64) *uint64 { return &v }

// givenOf converts decoded values to values to encode.
func givenOf(read []Read) map[string]Given {
	given := map[string]Given{}
	for _, r := range read {
		given[r.Name] = r.Given()
	}
	return given
}

// TestRoundTrip encodes 10^5 sets of random values, decodes the packets, and encodes the results again.
func TestRoundTrip(t *testing.T) {
	f, err := Compile(everything, Options{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 100000 {
		given, payload := f.Draw(random)
		packet, err := f.Encode(given, payload)
		if err != nil {
			t.Fatalf("packet %d: %v: %v", n, given, err)
		}
		read, err := f.Decode(packet)
		if err != nil {
			t.Fatalf("packet %d: %x: %v", n, packet, err)
		}
		got := givenOf(read)
		for name, want := range given {
			if g := got[name]; g.Raw != want.Raw || !bytes.Equal(g.Bytes, want.Bytes) && want.Bytes != nil || !reflect.DeepEqual(g.Items, want.Items) && name != "items" {
				t.Fatalf("packet %d: %s was %v and is %v in %x", n, name, want, g, packet)
			}
		}
		back, err := f.Encode(got, payload)
		if err != nil || string(back) != string(packet) {
			t.Fatalf("packet %d: %v\n%x encoded anew is\n%x", n, err, packet, back)
		}
	}
}

// TestPacket compares numbers and payloads of single packets with what encoded them.
func TestPacket(t *testing.T) {
	f, err := Compile(everything, Options{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 1000 {
		given, payload := f.Draw(random)
		packet, err := f.Encode(given, payload)
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Packet(packet)
		if err != nil {
			t.Fatalf("packet %d: %v", n, err)
		}
		read, err := f.Decode(packet)
		if err != nil {
			t.Fatalf("packet %d: %v", n, err)
		}
		for _, r := range read {
			if r.Field == nil || !r.Field.Kind.number() {
				continue
			}
			if got, ok := p.Number(r.Name); !ok || got != r.Raw {
				t.Errorf("packet %d: %s is %d, %v, expected %d", n, r.Name, got, ok, r.Raw)
			}
		}
		if got, ok := p.Payload(); !ok || !bytes.Equal(got, payload) {
			t.Errorf("packet %d: the payload is %x, %v, expected %x", n, got, ok, payload)
		}
	}
}

// TestPacketWithoutPayload checks payloads that the packet states to be longer than it is, and packets without data.
func TestPacketWithoutPayload(t *testing.T) {
	f, err := Compile(Spec{Name: "x", Layer: "payload", Payload: "size", Data: "kind == 1", Rows: []Row{{Name: "kind", Bits: 8}, {Name: "size", Bits: 8}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[string]string{"\x01\x02abc": "ab", "\x01\x04abc": "none", "\x02\x02abc": "none", "\x01": "none", "\x01\x00": ""} {
		got := "none"
		if p, err := f.Packet([]byte(bytes)); err != nil {
			t.Fatal(err)
		} else if payload, ok := p.Payload(); ok {
			got = string(payload)
		}
		if got != want {
			t.Errorf("%x has the payload %q, expected %q", bytes, got, want)
		}
	}
}

// FuzzDecode checks that decoding never reads beyond a packet and that a longer packet decodes to the same values.
func FuzzDecode(f *testing.F) {
	all, err := Compile(everything, Options{})
	if err != nil {
		f.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		packet, _, _ := all.Random(random)
		f.Add(packet, 7)
	}
	f.Fuzz(func(t *testing.T, packet []byte, cut int) {
		if cut < 0 || cut > len(packet) {
			return
		}
		whole, err := all.Decode(packet)
		part, partErr := all.Decode(packet[:cut])
		if err != nil || partErr != nil {
			return
		}
		given := givenOf(whole)
		for _, r := range part {
			if r.Items == nil && given[r.Name].Raw != r.Raw && r.Name != "one" && r.Name != "two" {
				t.Fatalf("%s of %x is %d, of its first %d bytes %d", r.Name, packet, given[r.Name].Raw, cut, r.Raw)
			}
		}
	})
}

// TestFaults checks that each invalid declaration is rejected with its field and line.
func TestFaults(t *testing.T) {
	u8 := func(name string) Row { return Row{Line: 2, Name: name, Bits: 8} }
	with := func(change func(*Row)) []Row {
		r := u8("b")
		r.Line = 3
		change(&r)
		return []Row{u8("a"), r}
	}
	for _, c := range []struct {
		want string
		spec Spec
	}{
		{"x.lua:3: format x: field 'b': it overlaps what is before it, which ends at bit 8: at = 4", Spec{Rows: with(func(r *Row) { r.At = "4" })}},
		{"x.lua:3: format x: field 'b': a gap of 8 bits is in front of it: say { reserved = 8 }", Spec{Rows: with(func(r *Row) { r.At = "16" })}},
		{"x.lua:3: format x: field 'b': a width of 65 bits is outside 1 to 64", Spec{Rows: with(func(r *Row) { r.Bits = 65 })}},
		{"x.lua:3: format x: field 'b': unit \"a b\": at most 16 characters without spaces", Spec{Rows: with(func(r *Row) { r.Unit = "a b" })}},
		{"x.lua:3: format x: field 'b': its values have names: it has no unit or scale",
			Spec{Rows: with(func(r *Row) { r.Unit, r.Values = "s", []Value{{1, "one"}} })}},
		{"x.lua:3: format x: field 'b': it is bytes and has no names for its values",
			Spec{Rows: with(func(r *Row) { r.Kind, r.Values = Bytes, []Value{{0, "none"}} })}},
		{"x.lua:3: format x: field 'b': it is bytes and has no const: let the script compare it",
			Spec{Rows: with(func(r *Row) { r.Kind, r.Const = Bytes, new(uint64) })}},
		{"x.lua:3: format x: field 'one': a value with a name is unsigned: read the list 'items' for its signed ones",
			Spec{Rows: []Row{u8("n"), {Line: 3, List: "items", Count: "n", Key: "id", Items: []Value{{1, "one"}},
				Rows: []Row{{Name: "id", Bits: 8}, {Name: "value", Bits: 8, Kind: Signed}}}}}},
		{"x.lua:3: format x: field 'b': it is a floating-point number and has no names for its values",
			Spec{Rows: with(func(r *Row) { r.Kind, r.Bits, r.Values = Float, 32, []Value{{1, "one"}} })}},
		{"x.lua:3: format x: field 'b': where it is depends on itself: b -> b", Spec{Rows: with(func(r *Row) { r.When = "b == 1" })}},
		{"x.lua:3: format x: field 'b': a floating-point number has 32 or 64 bits, not 8", Spec{Rows: with(func(r *Row) { r.Kind = Float })}},
		{"x.lua:3: format x: field 'b': when: unknown field 'aa' (did you mean 'a'?)", Spec{Rows: with(func(r *Row) { r.When = "aa == 1" })}},
		{"x.lua:3: format x: field 'b': when = \"a\": a condition expected", Spec{Rows: with(func(r *Row) { r.When = "a" })}},
		{"x.lua:3: format x: field 'b': const = 256 does not fit 8 bits", Spec{Rows: with(func(r *Row) { r.Const = number(256) })}},
		{"x.lua:3: format x: field 'b': the value 'big', 300, does not fit 8 bits", Spec{Rows: with(func(r *Row) { r.Values = []Value{{300, "big"}} })}},
		{"x.lua:3: format x: field 'a': there are two fields of this name", Spec{Rows: with(func(r *Row) { r.Name = "a" })}},
		{"x.lua:3: format x: field 'header_bytes': 'header_bytes' has a meaning of its own in conditions: choose another name",
			Spec{Rows: with(func(r *Row) { r.Name = HeaderBytes })}},
		{"x.lua:3: format x: field 'b': the header ends within a byte, at bit 12: say { reserved = 4 }", Spec{Rows: with(func(r *Row) { r.Bits = 4 })}},
		{"x.lua:3: format x: field 'b': a field with 'when' is whole bytes: put it into a part, { when = …, {…}, { reserved = 4 } }",
			Spec{Rows: with(func(r *Row) { r.Bits, r.When = 4, "a == 1" })}},
		{"x.lua:1: format x: sequence = 'c' is not a field that is a whole number", Spec{Rows: with(func(*Row) {}), Sequence: "c"}},
		{"x.lua:1: format x: sequence: per = 'a' is the sequence itself: name the fields for each of whose values it begins again", Spec{Rows: with(func(*Row) {}), Sequence: "a", Per: []string{"a"}}},
		{"x.lua:1: format x: sequence: per = 'aa' is not a field that is a whole number (did you mean 'a'?)",
			Spec{Rows: with(func(*Row) {}), Sequence: "b", Per: []string{"aa"}}},
		{"x.lua:1: format x: data: unknown field 'aa' (did you mean 'a'?)", Spec{Rows: with(func(*Row) {}), Data: "aa == 1"}},
		{"x.lua:1: format x: layer 'udp' is none of [frame network transport payload]", Spec{Rows: with(func(*Row) {}), Layer: "udp"}},
		{"x.lua:1: format x: it has no fields", Spec{}},
	} {
		c.spec.Name, c.spec.File, c.spec.Line = "x", "x.lua", 1
		_, err := Compile(c.spec, Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestStruct checks that struct texts are parsed as Python's module does.
func TestStruct(t *testing.T) {
	rows, err := ParseStruct(">I2H 3s x?q")
	if err != nil {
		t.Fatal(err)
	}
	var bits []int
	for _, r := range rows {
		bits = append(bits, r.Bits)
	}
	if !reflect.DeepEqual(bits, []int{32, 16, 16, 24, 8, 8, 64}) || !rows[4].Reserved || rows[3].Kind != Bytes || rows[6].Kind != Signed {
		t.Errorf("%+v", rows)
	}
	for text, want := range map[string]string{"": "byte order", "IH": "byte order", ">Z": "'Z' is not a code", ">I3": "ends with a count", ">99999B": "more than 65536"} {
		if _, err := ParseStruct(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
