package expr

import "slices"

// maxShared is the maximum number of values that a program keeps at the bottom of its stack.
const maxShared = 8

// sharing is the compiler's state of derived names, each of which takes many instructions: a program computes one that it uses more than once only
// once, and picks it from the bottom of its stack.
type sharing struct {
	counting bool
	uses     map[string]int
	ready    []*name            // derived names in order of dependency
	known    map[string]operand // operands of ready
	slots    map[string]uint32  // positions on the stack
}

// shared compiles the code that emit emits; what is the program's name in error messages.
func (c *compiler) shared(what string, emit func() error) (prog Program, err error) {
	c.sharing = sharing{counting: true, uses: map[string]int{}, known: map[string]operand{}}
	if err := emit(); err != nil {
		return nil, err
	}
	often := slices.DeleteFunc(c.ready, func(n *name) bool { return c.uses[n.text] < 2 })
	if len(often) == 0 {
		return c.finish(what)
	}
	for _, kept := range [][]*name{often[:min(len(often), maxShared)], nil} { // without kept values the program may fit the stack
		if prog, err = c.withKept(what, kept, emit); err == nil {
			break
		}
	}
	return prog, err
}

func (c *compiler) withKept(what string, kept []*name, emit func() error) (Program, error) {
	c.prog, c.depth, c.deepest = nil, 0, 0
	c.counting, c.slots = false, map[string]uint32{}
	for _, n := range kept {
		if _, err := c.field(n); err != nil {
			return nil, err
		}
		c.slots[n.text] = uint32(c.depth - 1)
	}
	if err := emit(); err != nil {
		return nil, err
	}
	return c.finish(what)
}

// again emits a derived name's number if it is already computed, and returns false otherwise.
func (c *compiler) again(n *name) (operand, bool) {
	c.uses[n.text]++
	x, known := c.known[n.text]
	if slot, ok := c.slots[n.text]; ok {
		c.emit(Insn{Op: OpPick, C: slot})
		return x, true
	}
	if known = known && c.counting; known {
		c.push(0) // this counting pass is not run
	}
	return x, known
}
