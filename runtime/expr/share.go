package expr

import "slices"

// maxShared bounds the numbers that a program keeps at the bottom of its stack.
const maxShared = 8

// sharing is what a compiler knows of derived names, each of which takes many instructions: where one is needed more than
// once, the program computes it first and picks it from the bottom of its stack.
type sharing struct {
	counting bool
	uses     map[string]int
	ready    []*name            // derived names, those that another needs before it
	known    map[string]operand // of those that are ready
	slots    map[string]uint32  // on the stack
}

// shared compiles what emit emits; what names it.
func (c *compiler) shared(what string, emit func() error) (prog Program, err error) {
	c.sharing = sharing{counting: true, uses: map[string]int{}, known: map[string]operand{}}
	if err := emit(); err != nil {
		return nil, err
	}
	often := slices.DeleteFunc(c.ready, func(n *name) bool { return c.uses[n.text] < 2 })
	if len(often) == 0 {
		return c.finish(what)
	}
	for _, kept := range [][]*name{often[:min(len(often), maxShared)], nil} { // without them it may fit into the stack
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

// again emits a derived name's number that is at hand; false: it is not.
func (c *compiler) again(n *name) (operand, bool) {
	c.uses[n.text]++
	x, known := c.known[n.text]
	if slot, ok := c.slots[n.text]; ok {
		c.emit(Insn{Op: OpPick, C: slot})
		return x, true
	}
	if known = known && c.counting; known {
		c.push(0) // this program won't run
	}
	return x, known
}
