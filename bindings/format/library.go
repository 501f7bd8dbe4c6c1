package format

import (
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// formatFolder is the library folder with one file per format.
const formatFolder = "formats"

// Options lists the names that fields of a format must not have.
var Options = format.Options{
	Known: func(name string) bool { _, ok := session.FieldNamed(name); return ok },
	Reserved: func(name string) string {
		if _, ok := session.FieldNamed(name); ok {
			return fmt.Sprintf("every packet has a field '%s'", name)
		}
		if templateOptions()[name] {
			return fmt.Sprintf("'%s' is an option of q:template", name)
		}
		return ""
	},
	Sample: func(name string) (format.SampleType, error) {
		t, err := session.ParseSample(name)
		return format.SampleType{Bits: t.Bits(), Complex: t.Complex()}, err
	},
}

// templateOptions returns the option names of q:template.
func templateOptions() map[string]bool {
	k := row.Keys{Row: row.TemplateRows}
	k.Read()
	return k.Known
}

// Load reads a format from Lua source that returns its declaration table, like the files in stdlib/formats. The source runs without any
// library. Errors name file, line and field.
func Load(file, source string) (*format.Format, error) {
	L := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 64, RegistrySize: 4096})
	defer L.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	L.SetContext(ctx)
	fn, err := L.Load(strings.NewReader(source), file)
	if err == nil {
		L.Push(fn)
		err = L.PCall(0, 1, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t, ok := L.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("%s: it returns %s, not the table of a format", file, row.Describe(L.Get(-1)))
	}
	return declared(t, file, returnedTable(file, source))
}

// declared builds the format from its table and checks its test vectors.
func declared(t *lua.LTable, file string, at *tableLines) (*format.Format, error) {
	s, err := declare(t, file, at)
	if err != nil {
		return nil, err
	}
	f, err := format.Compile(s, Options)
	if err != nil {
		return nil, err
	}
	v, ok := t.RawGetString("vectors").(*lua.LTable)
	for i := 1; ok && i <= v.Len(); i++ {
		if err := checkVector(f, v.RawGetInt(i)); err != nil {
			return nil, &format.Error{File: file, Format: s.Name, Line: s.Line, Msg: fmt.Sprintf("vectors[%d]: %v", i, err)}
		}
	}
	return f, nil
}

// checkVector checks a test vector, { hex = ..., FIELD = value, ... }: decoding hex must give the values, and encoding them must give hex.
func checkVector(f *format.Format, v lua.LValue) error {
	t, ok := v.(*lua.LTable)
	if !ok {
		return fmt.Errorf("a table with hex and fields expected, got %s", row.Describe(v))
	}
	text, ok := t.RawGetString("hex").(lua.LString)
	if !ok {
		return fmt.Errorf("hex: a string of hexadecimal digits expected, got %s", row.Describe(t.RawGetString("hex")))
	}
	bytes, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		return fmt.Errorf("hex: %w", err)
	}
	read, err := f.Decode(bytes)
	if err != nil {
		return err
	}
	got := map[string]format.Read{}
	for _, r := range read {
		got[r.Name] = r
	}
	given, payload, err := GivenValues(f, t, "hex")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		r, there := got[name]
		if !there {
			return fmt.Errorf("the packet has no '%s'", name)
		}
		if g := given[name]; g.Raw != r.Raw || g.Bytes != nil && string(g.Bytes) != string(r.Bytes) {
			return fmt.Errorf("%s is %s, not %s", name, ReadText(r), t.RawGetString(name))
		}
	}
	if payload == nil {
		if n, ok := f.HeaderBytes(bytes); ok {
			payload = bytes[n:]
		}
	}
	back, err := f.Encode(given, payload)
	if err != nil {
		return fmt.Errorf("encoded: %w", err)
	}
	if string(back) != string(bytes) {
		return fmt.Errorf("encoded it is %x", back)
	}
	return nil
}

// LibraryNames lists the names of a library's formats.
func LibraryNames(library fs.FS) []string {
	if library == nil {
		return nil
	}
	files, _ := fs.Glob(library, formatFolder+"/*.lua") // the pattern is valid
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".lua")
	}
	slices.Sort(files)
	return files
}

// FromLibrary loads a format of a library; nil if there is none of that name.
func FromLibrary(library fs.FS, name string) (*format.Format, error) {
	if !slices.Contains(LibraryNames(library), name) {
		return nil, nil
	}
	file := formatFolder + "/" + name + ".lua"
	source, err := fs.ReadFile(library, file)
	if err != nil {
		return nil, err
	}
	return Load("stdlib/"+file, string(source))
}

// DeclareHere builds the format from a table in the running call, whose script line locates its source.
func DeclareHere(c *row.Call, t *lua.LTable) (*format.Format, error) {
	dbg, ok := c.L.GetStack(1)
	if !ok {
		return declared(t, "", nil)
	}
	if _, err := c.L.GetInfo("Sl", dbg, lua.LNil); err != nil {
		return declared(t, "", nil)
	}
	at := &tableLines{at: dbg.CurrentLine}
	if source, err := textfile.Read(dbg.Source); err == nil {
		if found := calledTable(dbg.Source, string(source), "format", dbg.CurrentLine); found != nil {
			at = found
		}
	}
	return declared(t, dbg.Source, at)
}
