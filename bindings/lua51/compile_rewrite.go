package lua51

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// rewriter replaces, in place, constructs of a chunk that gopher-lua miscompiles. Names that it generates contain parentheses, so scripts can't
// use them.
type rewriter struct {
	name      string
	fn        *function // innermost function
	functions int       // functions visited so far
	outlined  []literal // constants inserted after compilation
	err       error     // first error
}

// function is the state of a function while its body is rewritten.
type function struct {
	outer     *function
	locals    map[string]bool // names of its locals anywhere in the body
	lastParam string
	varargs   bool
	blocks    int           // number of enclosing blocks
	loop      *around       // innermost loop
	jump      *ast.GotoStmt // a goto in it, if any
	literals  []ast.Expr
	kept      map[ast.Expr]bool // constants that must not be outlined, and operations on them
	chain     ast.Expr          // last arithmetic operation; before is its position in the chain
	before    int
}

func newRewriter(name string) *rewriter { return &rewriter{name: name} }

func (r *rewriter) fail(at ast.PositionHolder, format string, args ...any) {
	if r.err == nil {
		r.err = syntaxError(r.name, at.Line(), format, args...)
	}
}

func (r *rewriter) chunk(stmts []ast.Stmt) []ast.Stmt {
	return r.body(&ast.ParList{HasVargs: true}, stmts, false)
}

// body rewrites the statements of a function.
func (r *rewriter) body(params *ast.ParList, stmts []ast.Stmt, method bool) []ast.Stmt {
	r.functions++
	r.fn = &function{outer: r.fn, locals: map[string]bool{}, kept: map[ast.Expr]bool{}, varargs: params.HasVargs}
	defer func() { r.fn = r.fn.outer }()
	if method {
		r.param("self")
	}
	for _, name := range params.Names {
		r.param(name)
	}
	before := r.functions
	stmts = r.block(stmts)
	if at := r.fn.jump; at != nil && r.functions > before {
		r.fail(at, "goto in a function with functions inside, whose locals it would take apart: use a loop or a condition (Lua 5.1 has no goto)")
	}
	return r.outline(stmts)
}

func (r *rewriter) param(name string) {
	r.fn.locals[name] = true
	r.fn.lastParam = name
}

func (r *rewriter) declare(names ...string) {
	for _, name := range names {
		r.fn.locals[name] = true
	}
}

// block rewrites the statements of a block in place.
func (r *rewriter) block(stmts []ast.Stmt) []ast.Stmt {
	r.fn.blocks++
	for i, stmt := range stmts {
		stmts[i] = r.stmt(stmt)
	}
	r.fn.blocks--
	return stmts
}

func (r *rewriter) stmt(stmt ast.Stmt) ast.Stmt {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		return r.assign(stmt)
	case *ast.LocalAssignStmt:
		r.local(stmt)
	case *ast.FuncCallStmt:
		stmt.Expr = r.expr(stmt.Expr)
	case *ast.FuncDefStmt:
		if stmt.Name.Func != nil {
			stmt.Name.Func = r.expr(stmt.Name.Func)
		} else {
			stmt.Name.Receiver = r.expr(stmt.Name.Receiver)
		}
		stmt.Func.Stmts = r.body(stmt.Func.ParList, stmt.Func.Stmts, stmt.Name.Func == nil)
	case *ast.ReturnStmt:
		r.exprs(stmt.Exprs)
	case *ast.BreakStmt:
		r.leave()
	case *ast.GotoStmt:
		r.fn.jump = stmt
	default:
		return r.control(stmt)
	}
	return stmt
}

// control rewrites a statement with nested statements.
func (r *rewriter) control(stmt ast.Stmt) ast.Stmt {
	switch stmt := stmt.(type) {
	case *ast.DoBlockStmt:
		r.block(stmt.Stmts)
	case *ast.IfStmt:
		r.branch(stmt)
	case *ast.WhileStmt:
		stmt.Condition = r.condition(stmt.Condition)
		stmt.Stmts = r.loop(stmt.Stmts)
	case *ast.RepeatStmt:
		stmt.Stmts = r.loop(stmt.Stmts)
		stmt.Condition = r.expr(stmt.Condition)
	case *ast.NumberForStmt:
		stmt.Init, stmt.Limit, stmt.Step = r.expr(stmt.Init), r.expr(stmt.Limit), r.expr(stmt.Step)
		r.declare(stmt.Name)
		stmt.Stmts = r.loop(stmt.Stmts)
	case *ast.GenericForStmt:
		r.exprs(stmt.Exprs)
		r.declare(stmt.Names...)
		stmt.Stmts = r.loop(stmt.Stmts)
		return generic(stmt)
	}
	return stmt
}

// branch walks a chain of elseif iteratively, as it may be long.
func (r *rewriter) branch(stmt *ast.IfStmt) {
	for {
		stmt.Condition = r.condition(stmt.Condition)
		r.block(stmt.Then)
		next := elseif(stmt)
		if next == nil {
			r.block(stmt.Else)
			return
		}
		stmt = next
	}
}

// condition rewrites the condition of a block. An always false one becomes a comparison: jumps from later code to a block that begins with a jump
// would be wrong.
func (r *rewriter) condition(e ast.Expr) ast.Expr {
	e = r.expr(e)
	switch e.(type) {
	case *ast.FalseExpr, *ast.NilExpr:
		return never(e)
	}
	return e
}

// never returns a condition that is always false.
func never(at ast.PositionHolder) ast.Expr {
	zero, one := &ast.NumberExpr{Value: "0"}, &ast.NumberExpr{Value: "1"}
	e := &ast.RelationalOpExpr{Operator: "==", Lhs: zero, Rhs: one}
	for _, n := range []ast.PositionHolder{zero, one, e} {
		place(n, at)
	}
	return e
}

// local rewrites a declaration. The parser returns the same node for "local f = function", whose function does not see the new f, and for "local
// function f", which does; only the latter has a last line. A second value distinguishes them.
func (r *rewriter) local(stmt *ast.LocalAssignStmt) {
	r.declare(stmt.Names...)
	r.exprs(stmt.Exprs)
	if len(stmt.Names) == 1 && len(stmt.Exprs) == 1 && stmt.LastLine() == 0 {
		if _, ok := stmt.Exprs[0].(*ast.FunctionExpr); ok {
			none := &ast.NilExpr{}
			place(none, stmt)
			stmt.Exprs = append(stmt.Exprs, none)
		}
	}
}

// generic makes a generic for start with exactly three values. The compiler counts them by the number of loop variables, leaves stale registers
// for missing values, and overlaps operands.
func generic(stmt *ast.GenericForStmt) ast.Stmt {
	if len(stmt.Exprs) == 1 && isPlainCall(stmt.Exprs[0]) {
		return stmt // pairs(t): the call returns three
	}
	s := &sequencer{at: stmt}
	names := []string{"(generator)", "(state)", "(control)"}
	s.add(&ast.LocalAssignStmt{Names: names, Exprs: stmt.Exprs})
	stmt.Exprs = nil
	for _, name := range names {
		stmt.Exprs = append(stmt.Exprs, s.name(name))
	}
	s.stmts = append(s.stmts, stmt)
	block := &ast.DoBlockStmt{Stmts: s.stmts}
	place(block, stmt)
	return block
}

// isPlainCall reports whether e is a call, with all its results, of a name with optional fields.
func isPlainCall(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || call.AdjustRet {
		return false
	}
	at := call.Func
	if at == nil {
		at = call.Receiver
	}
	for {
		switch e := at.(type) {
		case *ast.IdentExpr:
			return true
		case *ast.AttrGetExpr:
			if _, ok := e.Key.(*ast.StringExpr); !ok {
				return false
			}
			at = e.Object
		default:
			return false
		}
	}
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = r.expr(e)
	}
}

// expr rewrites an expression; nil stays nil.
func (r *rewriter) expr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.NumberExpr:
		return r.number(e)
	case *ast.StringExpr:
		r.literal(e)
	case *ast.Comma3Expr:
		if !r.fn.varargs {
			r.fail(e, "cannot use '...' outside a vararg function")
		}
	case *ast.FunctionExpr:
		e.Stmts = r.body(e.ParList, e.Stmts, false)
	case *ast.TableExpr:
		return r.table(e)
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = r.expr(e.Func), r.expr(e.Receiver)
		r.exprs(e.Args)
	default:
		return r.operation(e)
	}
	return e
}

func (r *rewriter) operation(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
		return decided(e)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		return r.arithmetic(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expr(e.Expr)
		return r.fold(e, func(v ...float64) float64 { return -v[0] }, e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
		return negated(e)
	case *ast.UnaryLenOpExpr:
		e.Expr = r.expr(e.Expr)
	}
	return e
}

// decided returns the operand that a chain with a constant first operand evaluates to, so that the chain does not begin with a jump.
func decided(e *ast.LogicalOpExpr) ast.Expr {
	if !isConstant(e.Lhs) {
		return e
	}
	if isFalse(e.Lhs) == (e.Operator == "and") {
		return e.Lhs
	}
	switch rhs := e.Rhs.(type) { // exactly one value
	case *ast.FuncCallExpr:
		rhs.AdjustRet = true
	case *ast.Comma3Expr:
		rhs.AdjustRet = true
	}
	return e.Rhs
}

// negated returns not e; for a constant, the result.
func negated(e *ast.UnaryNotOpExpr) ast.Expr {
	if !isConstant(e.Expr) {
		return e
	}
	var result ast.Expr = &ast.FalseExpr{}
	if isFalse(e.Expr) {
		result = &ast.TrueExpr{}
	}
	place(result, e)
	return result
}

func isConstant(e ast.Expr) bool {
	switch e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr:
		return true
	}
	return isFalse(e)
}

func isFalse(e ast.Expr) bool {
	switch e.(type) {
	case *ast.FalseExpr, *ast.NilExpr:
		return true
	}
	return false
}

// place sets the lines of a new node to those of the statement that it replaces.
func place(to, from ast.PositionHolder) {
	to.SetLine(from.Line())
	to.SetLastLine(from.LastLine())
}

// around is a loop whose body is being rewritten.
type around struct {
	blocks    int // enclosing blocks of its body in the function
	functions int // visited before it
	leaves    bool
}

// loop rewrites a loop's body and prepends statements that make the compiler generate correct code.
func (r *rewriter) loop(body []ast.Stmt) []ast.Stmt {
	outer := r.fn.loop
	r.fn.loop = &around{blocks: r.fn.blocks + 1, functions: r.functions}
	r.block(body)
	leaves := r.fn.loop.leaves
	r.fn.loop = outer
	switch {
	case leaves:
		return slices.Concat(captured(body[0]), body)
	case beginsWithJump(body):
		return slices.Concat([]ast.Stmt{unused(body[0], "(first)")}, body)
	}
	return body
}

// leave handles a break. It must close the captured locals of the blocks that it leaves.
func (r *rewriter) leave() {
	if l := r.fn.loop; l != nil && r.fn.blocks > l.blocks && r.functions > l.functions {
		l.leaves = true
	}
}

// unused declares an unused local.
func unused(at ast.PositionHolder, name string) ast.Stmt {
	stmt := &ast.LocalAssignStmt{Names: []string{name}}
	place(stmt, at)
	return stmt
}

// beginsWithJump reports whether a break may be the first instruction of a block.
func beginsWithJump(stmts []ast.Stmt) bool {
	jump, _ := firstIsJump(stmts)
	return jump
}

// firstIsJump reports whether the first instruction of statements is a break, and whether there is any instruction.
func firstIsJump(stmts []ast.Stmt) (jump, some bool) {
	for _, stmt := range stmts {
		switch stmt := stmt.(type) {
		case *ast.BreakStmt:
			return true, true
		case *ast.DoBlockStmt:
			jump, some = firstIsJump(stmt.Stmts)
		case *ast.IfStmt:
			if !isConstant(stmt.Condition) {
				return false, true
			}
			jump, some = firstIsJump(stmt.Then)
			jump = jump || !some && len(stmt.Else) > 0 // jump over else
		case *ast.WhileStmt:
			if !isConstant(stmt.Condition) {
				return false, true
			}
			jump, some = firstIsJump(stmt.Stmts)
			jump, some = jump || !some, true // jump back
		case *ast.RepeatStmt:
			if jump, some = firstIsJump(stmt.Stmts); !some {
				jump, some = isConstant(stmt.Condition), !isConstant(stmt.Condition)
			}
		case *ast.LabelStmt:
		default:
			return false, true
		}
		if jump || some {
			return jump, true
		}
	}
	return false, false
}

// captured returns a local and a dead function that captures it, so that the loop's block has a captured local. Only then does the compiler
// close, at a break, the locals of blocks between the break and the loop.
func captured(at ast.PositionHolder) []ast.Stmt {
	get := &ast.IdentExpr{Value: "(first)"}
	result := &ast.ReturnStmt{Exprs: []ast.Expr{get}}
	fn := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{result}}
	keep := &ast.LocalAssignStmt{Names: []string{"(function)"}, Exprs: []ast.Expr{fn}}
	dead := &ast.IfStmt{Condition: never(at), Then: []ast.Stmt{keep}}
	for _, n := range []ast.PositionHolder{get, result, fn, keep, dead} {
		place(n, at)
	}
	return []ast.Stmt{unused(at, "(first)"), dead}
}
