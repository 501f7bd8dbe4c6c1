package lua51

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// For each constant, the compiler searches the function's constants from the first. In a function with many, they are outlined: all are replaced
// by the same constant, with line numbers that identify them, and the real ones are inserted after compilation.
const (
	manyConstants = 1000
	mostConstants = 1<<18 - 1    // maximum constant index of an instruction
	mostOperands  = 256          // constants usable as operands; others are loaded into registers
	outlinedLine  = 1 << 40      // line number of the first outlined constant
	anyString     = "(constant)" // placeholder for strings
	anyNumber     = "1e-300"     // placeholder for numbers
	mostUpvalues  = 255
)

// literal is an outlined constant.
type literal struct {
	value lua.LValue
	line  int
}

// literal records a constant of the function being rewritten.
func (r *rewriter) literal(e ast.Expr) { r.fn.literals = append(r.fn.literals, e) }

// outline replaces the constants of a function that has many.
func (r *rewriter) outline(stmts []ast.Stmt) []ast.Stmt {
	if len(r.fn.literals) <= manyConstants {
		return stmts
	}
	distinct := map[lua.LValue]bool{}
	for _, e := range r.fn.literals {
		distinct[valueOf(e)] = true
	}
	if len(distinct) <= manyConstants {
		return stmts
	}
	for _, e := range r.fn.literals {
		if r.fn.kept[e] {
			continue
		}
		r.outlined = append(r.outlined, literal{valueOf(e), e.Line()})
		e.SetLine(outlinedLine + len(r.outlined) - 1)
		switch e := e.(type) {
		case *ast.StringExpr:
			e.Value = anyString
		case *ast.NumberExpr:
			e.Value = anyNumber
		}
	}
	return append([]ast.Stmt{operandConstants(stmts[0])}, stmts...)
}

func valueOf(e ast.Expr) lua.LValue {
	switch e := e.(type) {
	case *ast.StringExpr:
		return lua.LString(e.Value)
	case *ast.NumberExpr:
		v, _ := readNumeral(e.Value) // parsed before
		return lua.LNumber(v)
	}
	return lua.LNil
}

// operandConstants returns a dead statement with enough constants that no later constant can be an operand.
func operandConstants(at ast.PositionHolder) ast.Stmt {
	const name = "(constants)"
	dead := &ast.IfStmt{Condition: never(at), Then: []ast.Stmt{unused(at, name)}}
	place(dead, at)
	for i := range mostOperands {
		to, value := &ast.IdentExpr{Value: name}, &ast.StringExpr{Value: fmt.Sprintf("(constant %d)", i)}
		assign := &ast.AssignStmt{Lhs: []ast.Expr{to}, Rhs: []ast.Expr{value}}
		for _, n := range []ast.PositionHolder{to, value, assign} {
			place(n, at)
		}
		dead.Then = append(dead.Then, assign)
	}
	return dead
}

// finish inserts the outlined constants into a function and its inner functions, and refuses what an instruction can't encode.
func (r *rewriter) finish(proto *lua.FunctionProto) error {
	at := map[lua.LValue]int{}
	for pc, line := range proto.DbgSourcePositions {
		if line < outlinedLine {
			continue
		}
		c := r.outlined[line-outlinedLine]
		proto.DbgSourcePositions[pc] = c.line
		if opcode(proto.Code[pc]) != lua.OP_LOADK {
			continue
		}
		index, ok := at[c.value]
		if !ok {
			index = len(proto.Constants)
			at[c.value] = index
			proto.Constants = append(proto.Constants, c.value)
		}
		if index > mostConstants {
			return syntaxError(r.name, proto.LineDefined, "function has more than %d constants", mostConstants)
		}
		proto.Code[pc] = proto.Code[pc]&^mostConstants | uint32(index)
	}
	if len(proto.DbgUpvalues) > mostUpvalues {
		return syntaxError(r.name, proto.LineDefined, "function uses more than %d locals of the functions around it", mostUpvalues)
	}
	if err := r.checkJumps(proto); err != nil {
		return err
	}
	for _, inner := range proto.FunctionPrototypes {
		if err := r.finish(inner); err != nil {
			return err
		}
	}
	return nil
}

func opcode(inst uint32) int { return int(inst >> 26) }

// checkJumps refuses jumps over more instructions than can be encoded: the compiler would truncate the distance.
func (r *rewriter) checkJumps(proto *lua.FunctionProto) error {
	const farthest = mostConstants >> 1
	if len(proto.Code) <= farthest {
		return nil
	}
	for pc, inst := range proto.Code {
		switch opcode(inst) {
		case lua.OP_JMP, lua.OP_FORLOOP, lua.OP_FORPREP:
			to := pc + 1 + int(inst&mostConstants) - farthest
			if len(proto.Code) > mostConstants || to < 0 || to >= len(proto.Code) {
				line := proto.DbgSourcePositions[pc]
				return syntaxError(r.name, line, "control structure too long (a jump over more than %d instructions)", farthest)
			}
		}
	}
	return nil
}
