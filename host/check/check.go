package check

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Options are the conditions under which a script would run.
type Options struct {
	Spec    spec.Options // options of the command line
	Library fs.FS        // contains the formats
}

// Script checks a script without running it and returns its errors, sorted by line.
func Script(file, source string, opts Options) []script.Issue {
	faults := script.Check(file, source, script.Globals())
	chunk, err := lua51.Parse(file, source)
	if err != nil {
		return faults
	}
	w := &walker{file: file, opts: opts, api: reference(), assigned: map[place]int{}, fields: map[string]bool{},
		catching: map[*ast.FunctionExpr]bool{}, uses: map[*ast.FunctionExpr]int{}, handlers: map[*ast.FunctionExpr]int{}, params: map[*ast.FunctionExpr][]typ{},
		names: names{stages: map[string]bool{}, metrics: map[string]bool{}, formats: map[string]session.Fields{}}}
	for w.walk = walkAssigned; w.walk <= walkFaults; w.walk++ {
		w.globals, w.made = map[string]*variable{}, map[*ast.FuncCallExpr]value{}
		w.block(chunk, nil)
	}
	faults = append(faults, w.faults...)
	faults = append(faults, formatFaults(file, source, chunk)...)
	slices.SortStableFunc(faults, func(a, b script.Issue) int { return a.Line - b.Line })
	return faults
}

// formatFaults returns the errors of a file that returns a format, like the library's. The file may also be a module that needs libraries: then a
// failure without them is not an error.
func formatFaults(file, source string, chunk []ast.Stmt) []script.Issue {
	if len(chunk) == 0 {
		return nil
	}
	r, ok := chunk[len(chunk)-1].(*ast.ReturnStmt)
	if !ok || len(r.Exprs) != 1 {
		return nil
	}
	if t, ok := r.Exprs[0].(*ast.TableExpr); !ok || !luaformat.Declares(t) {
		return nil
	}
	_, err := luaformat.Load(file, source)
	var fault *format.Error
	if !errors.As(err, &fault) {
		return nil
	}
	return []script.Issue{{Name: file, Line: fault.Line, Text: faultText(file, fault)}}
}

// faultText returns the text of a format's error without its position, which is printed separately.
func faultText(file string, f *format.Error) string {
	return strings.TrimPrefix(f.Error(), fmt.Sprintf("%s:%d: ", file, f.Line))
}
