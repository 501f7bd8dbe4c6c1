package cli

import (
	"fmt"

	"github.com/daqiri/daqiri-run/host/repl"
)

// dropIn opens a prompt on the running script at Ctrl-\.
func (r *runner) dropIn() {
	if r.prompt != nil {
		return // already open
	}
	p := repl.New(repl.Options{Interactive: true, Stdin: r.g.Stdin, Stdout: r.g.Stdout, Stderr: r.g.Stderr, HistoryFile: historyFile(r.g),
		Greeting: "the script continues; its locals can be read and set. help WORDS explains, Ctrl-D closes this prompt.", Interrupt: r.interruptChunk})
	ended := make(chan struct{}, 1)
	err := r.program.DropIn(p, func() { ended <- struct{}{} })
	if err != nil {
		fmt.Fprintln(r.con.stderr, err)
		return
	}
	fmt.Fprintln(r.con.stderr, "a prompt opens as soon as the script waits (Ctrl-C stops it)")
	r.prompt, r.dropped = p, ended
	r.con.underPrompt(r.g, p)
}

// dropOut returns the terminal to the script.
func (r *runner) dropOut() {
	r.closePrompt()
	r.prompt, r.dropped = nil, nil
	r.con.alone(r.g)
}
