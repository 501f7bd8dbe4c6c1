package script

import (
	"strings"
)

const maxLocals = 150 // per function; more might exceed the registers of one implementation

// block generates a few statements with their own scope.
func (g *generator) block(most int) *node {
	locals, own := len(g.locals), g.in().own
	b := &node{kind: isBlock}
	g.depth++
	for range 1 + g.r.IntN(most) {
		if g.room--; g.room < 0 {
			break
		}
		b.kids = append(b.kids, g.statement())
	}
	switch {
	case g.loops > 0 && g.chance(8):
		b.kids = append(b.kids, stmt("break"))
	case len(g.funcs) > 1 && g.chance(8):
		b.kids = append(b.kids, g.result())
	case g.depth == 1:
		b.kids = append(b.kids, g.show(), g.result())
	}
	g.depth--
	g.locals, g.in().own = g.locals[:locals], own
	return b
}

func (g *generator) result() *node {
	switch g.r.IntN(5) {
	case 0:
		return stmt("return @", g.call(1))
	case 1:
		return stmt("return (@)", g.call(1))
	case 2:
		return stmt("return " + g.name("v"))
	}
	return stmt("return @", g.values(3, 2))
}

func (g *generator) show() *node {
	l := g.values(3, 2)
	for range 2 {
		l.kids = append([]*node{expr(g.name(pick(g, "n", "k", "s", "v", "v")))}, l.kids...)
	}
	if n := len(g.locals); n > 0 && !g.chance(3) {
		l.kids = append([]*node{expr(g.locals[g.r.IntN(n)])}, l.kids...)
	}
	return stmt("P(@)", l)
}

func (g *generator) statement() *node {
	if g.depth > 5 {
		return pick(g, g.show, g.assign, g.local)()
	}
	switch g.r.IntN(24) {
	case 0, 1, 2, 3:
		return g.show()
	case 4, 5, 6, 7:
		return g.local()
	case 8, 9, 10, 11, 12:
		return g.assign()
	case 13, 14:
		return g.branch()
	case 15:
		return g.while()
	case 16:
		return g.repeat()
	case 17:
		return g.numeric()
	case 18, 19:
		return g.generic()
	case 20:
		return stmt("do\n@end", g.block(3))
	case 21, 22:
		return g.define()
	}
	return g.library()
}

// target generates an assignable expression and its kind.
func (g *generator) target() (*node, string) {
	kind := g.kind()
	switch g.r.IntN(6) {
	case 0:
		kind = pick(g, "n", "k", "s", "v")
		return expr(g.name("m") + "." + kind), kind
	case 1:
		return expr(g.name("t") + "[1]"), "k"
	case 2:
		return expr(g.name("m")+"[(@) or 0]", g.any(1)), "v"
	}
	if kind == "t" || kind == "m" {
		kind = "v"
	}
	return expr(g.name(kind)), kind
}

func (g *generator) assign() *node {
	if !g.chance(3) {
		to, kind := g.target()
		return stmt("@ = @", list(to), list(g.of(kind, 2)))
	}
	left, right := list(), list()
	for range 2 + g.r.IntN(2) {
		to, kind := g.target()
		left.kids = append(left.kids, to)
		right.kids = append(right.kids, g.of(kind, 1))
	}
	switch g.r.IntN(5) {
	case 0:
		right.kids = append(right.kids, g.call(1))
	case 1: // the kinds of the other values are unknown: all targets must accept anything
		for i, to := range left.kids {
			if to.text[0][:1] != "v" {
				left.kids[i] = expr(g.name("v"))
			}
		}
		right.kids[len(right.kids)-2] = g.call(1)
		right.kids = right.kids[:len(right.kids)-1]
	}
	return stmt("@ = @", left, right)
}

func (g *generator) local() *node {
	if g.in().own > maxLocals {
		return g.show()
	}
	var names []string
	right := list()
	for range 1 + g.r.IntN(3) {
		kind := g.kind()
		names = append(names, g.fresh(kind))
		right.kids = append(right.kids, g.of(kind, 2))
	}
	switch g.r.IntN(6) {
	case 0:
		right.kids = append(right.kids, g.call(1))
	case 1: // too few values
		for i := range names {
			names[i] = "v" + names[i][1:]
		}
		right.kids = right.kids[:len(right.kids)-1]
		if g.chance(2) {
			right.kids = append(right.kids, g.call(1))
		}
	}
	g.declare(names...)
	if len(right.kids) == 0 {
		return stmt("local " + strings.Join(names, ", "))
	}
	return stmt("local "+strings.Join(names, ", ")+" = @", right)
}

func (g *generator) branch() *node {
	text, kids := "if @ then\n@", []*node{g.condition(), g.block(3)}
	for g.chance(3) {
		text += "elseif @ then\n@"
		kids = append(kids, g.condition(), g.block(2))
	}
	if g.chance(2) {
		text += "else\n@"
		kids = append(kids, g.block(3))
	}
	return stmt(text+"end", kids...)
}

func (g *generator) condition() *node {
	if g.chance(6) {
		return pick(g, expr("nil"), expr("false"), expr("true"), expr("not nil"), expr("0"), expr("not 'x'"))
	}
	return pick(g, g.any, g.boolean, g.operand)(2)
}

// inLoop generates the body of a loop with its own locals.
func (g *generator) inLoop(names ...string) *node {
	locals, own := len(g.locals), g.in().own
	g.loops++
	g.declare(names...)
	b := g.block(4)
	g.loops--
	g.locals, g.in().own = g.locals[:locals], own
	return b
}

func (g *generator) while() *node {
	switch g.r.IntN(4) {
	case 0:
		return stmt("while T() and @ do\n@end", g.condition(), g.inLoop())
	case 1:
		return stmt("while true do do\n@end T() if @ then break end\nend", g.inLoop(), g.condition())
	case 2:
		return stmt("while "+pick(g, "false", "nil")+" do\n@end", g.inLoop())
	}
	k := g.name("k")
	return stmt("while "+k+" < 12 do T() "+k+" = "+k+" + 3\n@end", g.inLoop())
}

func (g *generator) repeat() *node {
	if g.chance(2) {
		return stmt("repeat do\n@end T() until @", g.inLoop(), g.condition())
	}
	name := g.fresh("v")
	return stmt("repeat\nlocal "+name+" = @ do\n@end "+pick(g, "gf1 = gf1 ", "gf1 = function(...) T() return "+name+", ... end ")+"T()\nuntil "+name+" or @", g.any(1), g.inLoop(name), g.condition())
}

func (g *generator) numeric() *node {
	name := g.fresh("k")
	if g.chance(3) {
		return stmt("for "+name+" = @, 4, "+pick(g, "2", "1", "1.5")+" do\n@end", g.index(1), g.inLoop(name))
	}
	if g.chance(3) {
		return stmt("for "+name+" = 3, @, -1 do\n@end", g.index(1), g.inLoop(name))
	}
	return stmt("for "+name+" = 1, @ do\n@end", g.index(1), g.inLoop(name))
}

func (g *generator) generic() *node {
	k, v, s := g.fresh("k"), g.fresh("v"), g.fresh("s")
	switch g.r.IntN(8) {
	case 0, 1:
		return stmt("for "+k+", "+v+" in ipairs(@) do\n@end", g.listOf(g.r.IntN(2)), g.inLoop(k, v))
	case 2: // unordered
		return stmt("for v1, v2 in pairs(@) do gk2 = (gk2 + 1) % 50 end", g.listOf(g.r.IntN(2)))
	case 3:
		return stmt("for "+s+" in (@):gmatch("+pick(g, "'%w'", "'%a+'", "'.'")+") do\n@end", g.strOperand(1), g.inLoop(s))
	case 4:
		return stmt("for "+v+" in (function() local i = 0 return function(a, b, ...) i = i + 1 P(a, b, ...) if i < 3 then return i end end end)()"+
			pick(g, "", ", nil", ", 5", ", 5, 6", ", gf2(1, 2)", ", (gf2(1, 2))", ", 5, gf2(1, 2)")+" do\n@end", g.inLoop(v))
	case 5:
		return stmt("for "+k+", "+v+", "+s+", v3 in function(st, c) T() if c < 3 then return c + 1, st, 'third' end end, @, 1 do\n@end", g.any(1), g.inLoop(k, v, s, "v3"))
	case 6:
		return stmt("for "+k+" in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i, @) end end) do\n@end", g.any(1), g.inLoop(k))
	}
	return stmt("for "+k+", "+v+" in next, {@}, nil do\n@end", g.any(1), g.inLoop())
}

// define generates a function and, in most cases, a call of it.
func (g *generator) define() *node {
	if g.in().own > maxLocals {
		return g.show()
	}
	name := g.fresh("f")
	head := ""
	switch g.r.IntN(6) {
	case 0:
		head, name = "function ", "gf"+pick(g, "1", "2")
	case 1:
		g.declare(name)
		head = "local function "
	case 2:
		params, leave := g.enter(false)
		body := g.block(4)
		leave()
		g.declare(name)
		return stmt("local "+name+" = function("+params+") T() do\n@end return @ end P("+name+"(@))", body, g.values(1, 0), g.values(2, 1))
	case 3:
		head, name = "function ", g.name("m")+pick(g, ":", ".")+"f"
	case 4:
		return g.closures()
	case 5:
		params, leave := g.enter(false)
		body := g.block(4)
		leave()
		last := pick(g, expr(""), expr("error('E1')"), expr("error({})"), expr("error(nil)"), expr("error('E2', 0)"), expr("error(@)", g.boolean(1)), expr("gf3(nil .. 1)"))
		return stmt("P(pcall(function("+params+") T() do\n@end @ end, @))", body, last, g.listOr(g.values(2, 1)))
	}
	params, leave := g.enter(strings.Contains(name, ":"))
	body := g.block(4)
	leave()
	if strings.Contains(name, ".") {
		name = strings.Replace(name, ".", ":", 1)
		return stmt("function "+strings.Replace(name, ":", ".", 1)+"("+params+") T()\n@end P("+name+"(@))", body, g.values(2, 1))
	}
	return stmt(head+name+"("+params+") T()\n@end P("+name+"(@))", body, g.values(2, 1))
}

// closures generates a loop that collects closures, and calls them afterwards.
func (g *generator) closures() *node {
	name := g.fresh("v")
	loop := pick(g, "for i = 1, 3 do", "for _, i in ipairs{5, 6, 7} do", "for i in coroutine.wrap(function() for j = 1, 3 do coroutine.yield(j) end end) do")
	return stmt("local q = {} "+loop+" local "+name+" = @ do\n@end "+
		"q[#q + 1] = function(x) "+name+" = x or "+name+" return i, "+name+" end q[#q + 1] = function() return "+name+" end end\n"+
		"for i = 1, #q do if i % 3 == 0 then P(q[i](i)) end end for i = 1, #q do P(i, q[i]()) end", g.any(1), g.inLoop(name))
}

// library generates uses of functions that modify tables.
func (g *generator) library() *node {
	t := g.name("t")
	switch g.r.IntN(9) {
	case 0:
		return stmt("if #"+t+" < 50 then table.insert("+t+", @) end", g.small(1))
	case 1:
		return stmt("if #"+t+" < 50 then table.insert("+t+", 1, @) end", g.str(1))
	case 2:
		return stmt("P((table.remove(" + t + pick(g, "", ", 1") + ")))")
	case 3:
		return stmt("do local q = {@, 5, 3, @, 9} table.sort(q"+pick(g, "", ", function(a, b) return a > b end")+") P(unpack(q)) end", g.small(1), g.number(1))
	case 4:
		return stmt("P(unpack(" + t + "))")
	case 5:
		return stmt("P(pcall(error, @))", pick(g, expr("nil"), expr("{}"), expr("gf1"), expr("'E3', 0")))
	case 6:
		return stmt("P(select(@, @))", pick(g, expr("2"), expr("-1"), expr("'#'"), expr("5")), g.listOr(g.values(3, 1)))
	case 7:
		c := g.fresh("v")
		return stmt("do local co = coroutine.create(function("+c+") local x = coroutine.yield("+c+", 1) P(x, @) return @ end) "+
			"P(coroutine.resume(co, @)) P(coroutine.resume(co, 2)) P(coroutine.status(co)) P(coroutine.resume(co)) end", g.any(1), g.values(1, 1), g.any(1))
	}
	return stmt("P(xpcall(function() local v1 = @ return v1.x.y end, function(e) return @ end))", g.any(1), g.any(0))
}
