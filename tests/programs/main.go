// Command programs writes, as C, the programs that read the fields of the library's formats, and packets with what
// runtime/format reads in them: tests/native/program/library_test.c runs the ones over the others.
package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/stdlib"
)

// packets is how many a format has: every second one is cut anywhere.
const packets = 64

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(out io.Writer) error {
	var table bytes.Buffer
	for n, name := range luaformat.LibraryNames(stdlib.Files) {
		f, err := luaformat.FromLibrary(stdlib.Files, name)
		if err != nil {
			return err
		}
		w := writer{Writer: out, table: &table, f: f, n: n}
		if err := w.format(rand.New(rand.NewPCG(uint64(n), 16))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err := fmt.Fprintf(out, "static const format formats[] = {\n%s};\n", table.String())
	return err
}

// writer writes one format.
type writer struct {
	io.Writer
	table *bytes.Buffer
	f     *format.Format
	n     int
}

func (w writer) format(r *rand.Rand) error {
	var all []map[string]uint64
	var lens, data bytes.Buffer
	for i := range packets {
		packet, _, err := w.f.Random(r)
		if err != nil {
			return err
		}
		if i%2 == 1 {
			packet = packet[:r.IntN(len(packet)+1)]
		}
		says := map[string]uint64{}
		read, _ := w.f.Decode(packet) // an error: it is of another format, and lacks all fields
		for _, x := range read {
			if x.Bytes == nil && x.Items == nil {
				says[x.Name] = x.Raw
			}
		}
		all = append(all, says)
		fmt.Fprintf(&lens, "%d, ", len(packet))
		for _, b := range packet {
			fmt.Fprintf(&data, "%d, ", b)
		}
	}
	fmt.Fprintf(w, "static const uint32_t lens%d[] = {%s};\nstatic const uint8_t bytes%d[] = {%s0};\n", w.n, &lens, w.n, &data)
	var programs bytes.Buffer
	for k, name := range w.f.Names() {
		if x := w.f.Named(name); x != nil && (x.Const != nil || x.Kind == format.Float || x.Kind == format.Bytes || x.Kind == format.IPv6) {
			continue // constants are read of packets of other formats, too
		}
		if err := w.program(k, name, all); err != nil {
			return err
		}
		fmt.Fprintf(&programs, "    {%q, insns%d_%d, sizeof insns%d_%d / sizeof(dq_insn), want%d_%d, has%d_%d},\n", name, w.n, k, w.n, k, w.n, k, w.n, k)
	}
	fmt.Fprintf(w, "static const program programs%d[] = {\n%s};\n", w.n, &programs)
	fmt.Fprintf(w.table, "    {%q, %q, programs%d, sizeof programs%d / sizeof(program), lens%d, bytes%d},\n", w.f.Spec.Name, w.f.Spec.Layer, w.n, w.n, w.n, w.n)
	return nil
}

// program writes what reads a field, and what all packets say of it.
func (w writer) program(k int, name string, all []map[string]uint64) error {
	e, err := expr.Parse(name)
	if err != nil {
		return err
	}
	prog, _, err := e.CompileNumber(resolver{w.f})
	if err != nil {
		return err
	}
	var insns, want, has bytes.Buffer
	for _, i := range prog {
		fmt.Fprintf(&insns, "{%d, %d, %d, %d, %du}, ", i.Op, i.A, i.B, i.C, i.Imm)
	}
	for _, says := range all {
		v, ok := says[name]
		fmt.Fprintf(&want, "%du, ", v)
		fmt.Fprintf(&has, "%t, ", ok)
	}
	_, err = fmt.Fprintf(w, "static const dq_insn insns%d_%d[] = {%s};\nstatic const uint64_t want%d_%d[] = {%s};\nstatic const bool has%d_%d[] = {%s};\n",
		w.n, k, &insns, w.n, k, &want, w.n, k, &has)
	return err
}

// resolver knows a format's fields, then those of every packet.
type resolver struct{ *format.Format }

func (r resolver) Field(name string) (expr.Field, bool) {
	if x, ok := r.Format.Field(name); ok {
		return x, true
	}
	x, ok := session.FieldNamed(name)
	return expr.Field{Base: x.Base, Meta: x.Meta, Flags: x.Flags, Need: x.Need, BitWidth: x.BitWidth, BitOffset: x.BitOffset}, ok
}
