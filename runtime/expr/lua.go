package expr

import "fmt"

// luaCalls maps operators to the Lua functions that implement them for numbers that may be absent.
var luaCalls = map[string]string{
	"==": "eq", "~=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
	"+": "add", "-": "sub", "*": "mul", "//": "div", "%": "mod", "&": "band", "|": "bor", "~": "bxor", "<<": "shl", ">>": "shr",
}

// Lua returns the expression as Lua source. ref returns the source of a name; operators become calls of eq, add, band and so on, which the caller's
// source must define. It supports expressions over packet fields only; a test for an IPv6 prefix with `in` becomes false.
func (e *Expr) Lua(ref func(name string) string) string { return luaText(e.root, ref) }

func luaText(n node, ref func(string) string) string {
	switch n := n.(type) {
	case *number:
		return n.val.FloatString(0)
	case *name:
		return ref(n.text)
	case *unaryNode:
		x := luaText(n.x, ref)
		switch n.op {
		case "not":
			return "(not " + x + ")"
		case "-":
			return "sub(0, " + x + ")"
		}
		return "sub(-1, " + x + ")"
	case *binaryNode:
		x, y := luaText(n.x, ref), luaText(n.y, ref)
		if n.op == "and" || n.op == "or" {
			return fmt.Sprintf("(%s %s %s)", x, n.op, y)
		}
		if f, ok := luaCalls[n.op]; ok {
			return fmt.Sprintf("%s(%s, %s)", f, x, y)
		}
	}
	return "false"
}
