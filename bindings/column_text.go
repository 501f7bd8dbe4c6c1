package bindings

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
)

const (
	columnPerRow = 8  // values per row at the prompt
	columnRows   = 16 // maximum number of rows
)

// columnShow formats a column for the prompt: rows of values, each row prefixed with the number of its first packet.
func columnShow(c *call) int {
	col, _ := row.Userdata[*column](c.L.Get(1))
	texts, wide := make([]string, min(col.values.Len(), columnPerRow*columnRows)), 0
	for i := range texts {
		texts[i] = "-"
		if col.present(i) {
			texts[i] = luaformat.FieldText(col.name, col.values.At(i), col.signed)
		}
		wide = max(wide, len(texts[i]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "column %s of %d packets", col.name, col.values.Len())
	for i, text := range texts {
		if i%columnPerRow == 0 {
			fmt.Fprintf(&b, "\n%6d", i+1)
		}
		fmt.Fprintf(&b, "  %*s", wide, text)
	}
	if n := col.values.Len() - len(texts); n > 0 {
		fmt.Fprintf(&b, "\n     … %d more", n)
	}
	return c.Push(lua.LString(b.String()))
}
