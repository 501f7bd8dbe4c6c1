package expr

// Limits of Parse, which bound the recursion depth of all functions that walk an expression.
const (
	maxText  = 4096
	maxDepth = 100
)

// Expr is a parsed and type-checked expression.
type Expr struct {
	root node
	cond bool
}

// Name is a name in an expression and the position of its first use.
type Name struct {
	Pos
	Text string
}

type parser struct {
	lex   lexer
	tok   token
	depth int
}

// Parse parses an expression. Its errors are of type *Error.
func Parse(text string) (*Expr, error) {
	if len(text) > maxText {
		return nil, errorAt(Pos{1, 1}, "longer than %d bytes", maxText)
	}
	p := &parser{lex: lexer{text: text, at: Pos{1, 1}}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.expression(precOr)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokEnd {
		return nil, p.unexpected()
	}
	kind, err := kindOf(root)
	if err != nil {
		return nil, err
	}
	if kind == kindAddress {
		return nil, errorAt(root.pos(), "an address alone is not a condition: compare a field with it")
	}
	return &Expr{root, kind == kindCondition}, nil
}

// IsCondition reports whether the expression is a condition; otherwise it is a number.
func (e *Expr) IsCondition() bool { return e.cond }

// Names returns each name in the expression once, in the order of first use.
func (e *Expr) Names() []Name {
	var names []Name
	seen := map[string]bool{}
	walk(e.root, func(n node) {
		if n, ok := n.(*name); ok && !seen[n.text] {
			seen[n.text] = true
			names = append(names, Name{n.at, n.text})
		}
	})
	return names
}

// Check returns an error for the first operand that Eval cannot evaluate: an unknown name, with a suggestion, or an IPv6 address. It is not needed
// before CompilePacket.
func (e *Expr) Check(known []string) error {
	set := make(map[string]bool, len(known))
	for _, k := range known {
		set[k] = true
	}
	var err error
	walk(e.root, func(n node) {
		switch n := n.(type) {
		case *name:
			if err == nil && !set[n.text] {
				err = unknownName(n.at, n.text, known)
			}
		case *address:
			if err == nil && n.prefix.Addr().Is6() {
				err = errorAt(n.at, "only packet fields compare with IPv6 addresses")
			}
		}
	})
	return err
}

func (p *parser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

func (p *parser) unexpected() error {
	switch p.tok.kind {
	case tokEnd:
		return errorAt(p.tok.at, "unexpected end")
	case tokLiteral:
		return errorAt(p.tok.at, "unexpected '%s': an operator is missing before it", literalText(p.tok.lit))
	case tokName:
		return errorAt(p.tok.at, "unexpected '%s': an operator is missing before it", p.tok.text)
	}
	return errorAt(p.tok.at, "unexpected '%s'", p.tok.text)
}

func literalText(n node) string {
	if a, ok := n.(*address); ok {
		return a.text
	}
	return n.(*number).text
}

// expression parses operators of precedence prec and above.
func (p *parser) expression(prec int) (node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, errorAt(p.tok.at, "nested more than %d deep", maxDepth)
	}
	x, err := p.operand()
	for err == nil {
		op := p.tok
		own := precedence[op.text]
		if op.kind != tokOperator || own == 0 || own < prec {
			return x, nil
		}
		if err = p.advance(); err != nil {
			return nil, err
		}
		right := own + 1
		if own == precPower {
			right = precUnary // right-associative, and 2^-3 needs no parentheses
		}
		var y node
		if y, err = p.expression(right); err == nil {
			x = &binaryNode{op.at, op.text, x, y}
		}
	}
	return nil, err
}

func (p *parser) operand() (node, error) {
	tok := p.tok
	switch {
	case tok.kind == tokLiteral:
		return tok.lit, p.advance()
	case tok.kind == tokName:
		return &name{tok.at, tok.text}, p.advance()
	case tok.kind != tokOperator:
		return nil, p.unexpected()
	case tok.text == "-" || tok.text == "~" || tok.text == "not":
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.expression(precUnary)
		return &unaryNode{tok.at, tok.text, x}, err
	case tok.text == "(":
		return p.parenthesis()
	}
	return nil, p.unexpected()
}

func (p *parser) parenthesis() (node, error) {
	open := p.tok.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.expression(precOr)
	if err != nil {
		return nil, err
	}
	if p.tok.kind == tokEnd {
		return nil, errorAt(p.tok.at, "missing ')' for the '(' at %d:%d", open.Line, open.Col)
	}
	if p.tok.kind != tokOperator || p.tok.text != ")" {
		return nil, p.unexpected()
	}
	return x, p.advance()
}
