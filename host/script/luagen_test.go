package script

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator generates random Lua 5.1 programs that terminate quickly, have no input and print their results. The first letter of a variable gives
// its content: n a number, k a small integer, s a string, v any value, t a list without holes, m a table with fields and methods, f a function.
// Variables that are not locals are globals.
type generator struct {
	r      *rand.Rand
	locals []string
	funcs  []funcInfo // enclosing functions, innermost last
	loops  int        // enclosing loops in this function
	depth  int        // nesting of statements
	room   int        // statements left
}

type funcInfo struct {
	varargs bool
	locals  int // number of locals at its beginning
	own     int // maximum number of its locals so far
}

func generate(seed uint64) *node {
	g := &generator{r: rand.New(rand.NewPCG(seed, 51)), room: 14, funcs: []funcInfo{{varargs: true}}}
	body := &node{kind: isBlock}
	body.kids = append(body.kids, g.preparation()...)
	body.kids = append(body.kids, g.block(6).kids...)
	return body
}

// preparation generates the globals used by programs.
func (g *generator) preparation() []*node {
	all := []*node{
		stmt("gn1, gn2, gk1, gk2, gs1, gs2, gv1, gv2 = 1.5, -2, 3, 7, 'one', 'two', nil, false"),
		stmt("gt1, gt2 = {3, 1, 2}, {'x', 'y'}"),
		stmt("function gf1(...) T() return ... end function gf2(a, b) T() return b, a, gk1 end function gf3() return false end"),
		stmt("gm1 = {n = 4, k = 2, s = 'field', v = false, f = function(self, x) T() return x, self.n end}"),
		stmt("gm2 = setmetatable({n = 0.25, k = 5, s = 'meta', f = gm1.f}, {__index = gm1, __call = function(self, ...) T() return ... end, " +
			"__add = function(a, b) T() return 7 end, __sub = function() return nil, 1 end, __concat = function(a, b) return 'cat' end, __unm = function() return 'unm' end, " +
			"__lt = function() return true end, __le = function() return false end, __eq = function() return true end})"),
	}
	if g.chance(12) { // constants beyond the operand range
		var b strings.Builder
		b.WriteString("gt3 = {")
		for i := range 200 + g.r.IntN(150) {
			fmt.Fprintf(&b, "%d.5, 'c%d', ", i, i)
		}
		all = append(all, stmt(b.String()+"}"))
	}
	if g.chance(25) { // few registers left
		n := 60 + g.r.IntN(50)
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "local r%d = %d ", i, i)
		}
		all = append(all, stmt(b.String()))
		g.funcs[0].own = n
	}
	return all
}

func (g *generator) chance(oneIn int) bool { return g.r.IntN(oneIn) == 0 }

func (g *generator) in() *funcInfo { return &g.funcs[len(g.funcs)-1] }

func pick[T any](g *generator, of ...T) T { return of[g.r.IntN(len(of))] }

// name returns a variable of a kind: usually a local, of this or of an outer function.
func (g *generator) name(kind string) string {
	var fit []string
	for _, l := range g.locals {
		if strings.HasPrefix(l, kind) {
			fit = append(fit, l)
		}
	}
	if len(fit) > 0 && !g.chance(5) {
		return fit[g.r.IntN(len(fit))]
	}
	return "g" + kind + pick(g, "1", "2")
}

func (g *generator) declare(names ...string) {
	g.locals = append(g.locals, names...)
	g.in().own += len(names)
}

func (g *generator) fresh(kind string) string { return kind + pick(g, "1", "2", "3") }

const kinds = "nksvvvtm"

func (g *generator) kind() string { return string(kinds[g.r.IntN(len(kinds))]) }

// of generates an expression of a kind.
func (g *generator) of(kind string, depth int) *node {
	switch kind {
	case "n":
		return g.number(depth)
	case "k":
		return g.small(depth)
	case "s":
		return g.str(depth)
	case "t":
		return g.listOf(depth)
	case "m":
		return g.object(depth)
	case "f":
		return g.function()
	}
	return g.any(depth)
}

func (g *generator) number(depth int) *node {
	if depth <= 0 {
		return pick(g, expr(pick(g, "0.5", "1e3", "2", "0x1F", ".25", "3.", "1e-2", "017", "1e300")), expr(g.name("n")), expr(g.name("n")), expr(g.name("k")))
	}
	d := depth - 1
	switch g.r.IntN(11) {
	case 0, 1, 2:
		return expr("(@ "+pick(g, "+", "-", "*", "+")+" @)", g.number(d), g.number(d))
	case 3:
		return expr("(@ / "+pick(g, "2", "4", "0.5", "-8")+")", g.number(d))
	case 4:
		return expr("(- @)", g.number(d))
	case 5:
		return expr("(@ and @ or @)", g.any(d), g.number(d), g.number(d))
	case 6:
		return expr("("+g.name("m")+".n or @)", g.number(d))
	case 7:
		return expr("math."+pick(g, "max", "min")+"(@, @)", g.number(d), g.number(d))
	case 8:
		return expr("(tonumber(@) or @)", g.str(d), g.number(d))
	case 9:
		return expr("("+g.name("k")+" ^ "+pick(g, "2", "3", "0")+" - @)", g.number(d))
	}
	return g.small(depth)
}

// small generates a small integer.
func (g *generator) small(depth int) *node {
	if depth <= 0 {
		return pick(g, expr(pick(g, "1", "2", "3", "5", "10", "0xA")), expr(g.name("k")), expr(g.name("k")))
	}
	d := depth - 1
	switch g.r.IntN(11) {
	case 0:
		return expr("(@ % "+pick(g, "3", "7", "-5")+")", g.small(d))
	case 1, 2:
		return expr("((@ "+pick(g, "+", "-")+" @) % 11)", g.small(d), g.small(d))
	case 3:
		return expr("#@", g.listOf(0))
	case 4:
		return expr("#@", g.strOperand(d))
	case 5:
		return expr("(@ and @ or @)", g.any(d), g.small(d), g.small(d))
	case 6:
		return expr("("+g.name("m")+".k or @)", g.small(d))
	case 7:
		return expr("select('#', @)", g.values(2, d))
	case 8:
		return expr("(@):byte(@)", g.strOperand(d), g.index(d)).orElse("0")
	case 9:
		return expr("(@):find(@, 1, true)", g.strOperand(d), expr(pick(g, "'e'", "'o'", "'tw'"))).orElse("-1")
	}
	return g.small(0)
}

// orElse makes a call that may return nil or several values return exactly one.
func (n *node) orElse(other string) *node { return expr("((@) or "+other+")", n) }

func (g *generator) index(depth int) *node { return expr("(1 + @ % 3)", g.small(depth)) }

func (g *generator) strOperand(depth int) *node {
	if depth <= 0 {
		return expr(g.name("s"))
	}
	return expr("(@)", g.str(depth))
}

func (g *generator) str(depth int) *node {
	if depth <= 0 {
		return pick(g, expr(pick(g, "'lit'", `"a\n\065\\"`, "[[long]]", "''", "'10'", "'0x10'")), expr(g.name("s")), expr(g.name("s")))
	}
	d := depth - 1
	switch g.r.IntN(16) {
	case 0, 1:
		return expr("(@ .. @)", g.str(d), g.str(d)).cut()
	case 2:
		return expr("(@ .. @ .. @ .. S(@))", g.str(d), g.str(d), expr(pick(g, "1", "20", "0x7")), g.small(d)).cut()
	case 3:
		return expr("(@):sub(@, @)", g.str(d), pick(g, g.small(0), expr("-3")), pick(g, g.small(d), expr("-1"), expr("-2")))
	case 4:
		return expr("(@):"+pick(g, "upper", "lower", "reverse")+"()", g.strOperand(d))
	case 5:
		return expr("(@):rep(@ % 4)", g.strOperand(d), g.small(d)).cut()
	case 6:
		return expr("("+pick(g, "'%5d|%-4d|%03d'", "'%x %X %o'", "'%+d % d %i'", "'%c%c%c'")+"):format(65 + @ % 20, 66, 67)", g.small(d))
	case 7:
		return expr("string.format("+pick(g, "'%5.2f'", "'%.3e'", "'%g'", "'%10.4g|'", "'%-12.1f|'")+", @ % 1000)", g.small(d))
	case 8:
		return expr("string.format("+pick(g, "'%s'", "'%q'", "'%5s|'", "'%-7s|'", "'%.2s'")+", @)", g.str(d)).cut()
	case 9:
		return expr("((@):gsub("+pick(g, "'%w', '<%0>'", "'(.)(.)', '%2%1'", "'[aeiou]', string.upper", "'%a+', {lit = 'T', one = 1}", "'l*', '-'", "'', '.'", "'%s', ''", "'o', '%%', 1")+"))", g.strOperand(d)).cut()
	case 10:
		return expr("(@):match("+pick(g, "'%a+'", "'(%w)%w*'", "'^(.-)e'", "'[^aeiou]+$'", "'()t'", "'%b()'", "'.-'", "'(o(n))'")+")", g.strOperand(d)).orElse("'none'").text1("S(@)")
	case 11:
		return expr("tostring(@)", pick(g, g.boolean(d), expr("nil")))
	case 12:
		return expr("type(@)", g.any(d))
	case 13:
		return expr("(@ and @ or @)", g.boolean(d), g.str(d), g.str(d))
	case 14:
		return expr("table.concat({@}, '-')", list(g.str(d), g.str(d)))
	}
	return expr("S(@)", g.any(d))
}

// cut limits the length of strings.
func (n *node) cut() *node { return n.text1("(@):sub(1, 40)") }

func (n *node) text1(text string) *node { return expr(text, n) }

func (g *generator) boolean(depth int) *node {
	if depth <= 0 {
		return pick(g, expr("true"), expr("false"), expr("("+g.name("k")+" > 2)"), expr("("+g.name("v")+" == nil)"))
	}
	d := depth - 1
	switch g.r.IntN(7) {
	case 0, 1:
		return expr("(@ "+pick(g, "<", "<=", ">", ">=", "==", "~=")+" @)", g.number(d), g.number(d))
	case 2:
		return expr("(@ "+pick(g, "<", "<=", ">", ">=", "==", "~=")+" @)", g.str(d), g.str(d))
	case 3:
		return expr("(@ "+pick(g, "==", "~=")+" @)", g.any(d), g.any(d))
	case 4:
		return expr("(not @)", g.any(d))
	case 5:
		return expr("(" + pick(g, "gm2", "gm2", g.name("m")) + pick(g, " < ", " == ", " <= ", " ~= ") + "gm2)")
	}
	return expr("(@ "+pick(g, "and", "or")+" @)", g.boolean(d), g.boolean(d))
}

// any generates an expression of any kind, usually a chain of and, or and not with constants and calls among the operands.
func (g *generator) any(depth int) *node {
	if depth <= 0 {
		return pick(g, expr("nil"), expr("false"), expr("true"), expr("1"), expr("'str'"), expr(g.name("v")), expr(g.name("v")),
			expr(g.name("v")), expr(g.name("n")), expr(g.name("s")), expr("gf3()"))
	}
	d := depth - 1
	switch g.r.IntN(16) {
	case 0, 1, 2, 3:
		return expr(pick(g, "@ and @", "@ or @", "(@ and @)", "(@ or @)"), g.operand(d), g.operand(d))
	case 4:
		return expr(pick(g, "@ and @ or @", "@ or @ and @", "(@ or @) and @", "@ and (@ or @)"), g.operand(d), g.operand(d), g.operand(d))
	case 5:
		return expr("not @", g.operand(d))
	case 6, 7:
		return g.call(d)
	case 8:
		return expr("(@)", g.call(d))
	case 9:
		if g.in().varargs {
			return pick(g, expr("..."), expr("(...)"), expr("select(@, ...)", g.index(0)))
		}
		return expr(g.name("v"))
	case 10:
		return expr(g.name("t")+"[@]", g.small(d))
	case 11:
		return expr(g.name("m") + pick(g, ".v", ".n", ".s", "['v']", ".none"))
	case 12:
		return g.boolean(d)
	case 13:
		return g.number(d)
	case 14:
		return pick(g, expr("(gm2 + @)", g.number(d)), expr("(@ - gm2)", g.number(d)), expr("(@ .. gm2)", g.str(d)), expr("(gm2 .. @ .. @)", g.str(d), g.str(d)),
			expr("(-gm2)"), expr("gm2(@)", g.values(2, d)), expr("(gm2 + 1 - gm2)"))
	}
	return g.str(d)
}

// operand generates an operand of a chain.
func (g *generator) operand(depth int) *node {
	switch g.r.IntN(6) {
	case 0:
		return pick(g, expr("nil"), expr("false"), expr("true"), expr("7"), expr("'op'"))
	case 1:
		return expr("(@)", g.any(depth))
	case 2:
		return g.boolean(depth)
	case 3:
		return expr(g.name(pick(g, "v", "v", "n", "s")))
	case 4:
		return expr("(@)", g.call(depth))
	}
	return expr("(@)", g.any(0))
}

// values generates a list of at most most expressions; the last may have several values.
func (g *generator) values(most, depth int) *node {
	l := list()
	for range g.r.IntN(most + 1) {
		l.kids = append(l.kids, g.any(depth-1))
	}
	switch {
	case g.chance(4):
		l.kids = append(l.kids, g.call(depth-1))
	case g.chance(6) && g.in().varargs:
		l.kids = append(l.kids, expr("..."))
	}
	return l
}

func (g *generator) call(depth int) *node {
	if depth < 0 {
		return expr("gf3()")
	}
	switch g.r.IntN(7) {
	case 0:
		return expr(g.name("m")+":f(@)", g.values(2, depth))
	case 1:
		return expr("pcall("+g.name("f")+", @)", g.listOr(g.values(2, depth)))
	case 2:
		return expr("unpack(@)", g.listOf(0))
	case 3:
		return expr("(@)(@)", g.function(), g.values(2, depth))
	}
	return expr(g.name("f")+"(@)", g.values(3, depth))
}

// listOr generates a nonempty list.
func (g *generator) listOr(l *node) *node {
	if len(l.kids) == 0 {
		l.kids = append(l.kids, expr("1"))
	}
	return l
}

// function generates a function on one line.
func (g *generator) function() *node {
	params, leave := g.enter(false)
	defer leave()
	return expr("function("+params+") "+pick(g, "T() ", "")+"return @ end", g.values(2, 1))
}

// enter begins a function; it returns its parameters and a function that ends it.
func (g *generator) enter(method bool) (params string, leave func()) {
	var names []string
	for range g.r.IntN(4) {
		names = append(names, g.fresh(pick(g, "n", "k", "s", "v", "v", "v")))
	}
	for i := range names { // arguments may be any value
		names[i] = "v" + names[i][1:]
	}
	slices.Sort(names)
	names = slices.Compact(names)
	locals, loops := len(g.locals), g.loops
	info := funcInfo{varargs: g.chance(3), locals: locals}
	g.funcs = append(g.funcs, info)
	g.declare(names...)
	if info.varargs {
		names = append(names, "...")
	}
	g.loops = 0
	return strings.Join(names, ", "), func() {
		g.locals, g.loops = g.locals[:locals], loops
		g.funcs = g.funcs[:len(g.funcs)-1]
	}
}

func (g *generator) listOf(depth int) *node {
	if depth <= 0 {
		return expr(g.name("t"))
	}
	l := list()
	n := g.r.IntN(5)
	if g.chance(9) {
		n = 48 + g.r.IntN(5)*g.r.IntN(15)
	}
	for range n {
		l.kids = append(l.kids, pick(g, expr("1"), expr("'i'"), g.small(0), g.str(0)))
	}
	for range g.r.IntN(3) {
		l.kids = slices.Insert(l.kids, g.r.IntN(len(l.kids)+1), pick(g, expr("x = @", g.any(depth-1)), expr("['y'] = @", g.call(depth-1)), expr("[@] = 5", expr(pick(g, "-1", "'k'", "true")))))
	}
	if g.chance(3) {
		l.kids = append(l.kids, pick(g, expr("unpack({7, 8, 9})"), expr("gf2(1, 2)"), expr("(gf2(1, 2))")))
	}
	return expr("{@}", l)
}

func (g *generator) object(depth int) *node {
	if depth <= 0 {
		return expr(g.name("m"))
	}
	return expr("{n = @, k = @, v = @, s = @, f = "+g.name("m")+".f}", g.number(depth-1), g.small(depth-1), g.any(depth-1), g.str(depth-1))
}
