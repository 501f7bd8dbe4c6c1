// Package exit holds the exit codes of the program: their numbers, their meaning, and which of several causes wins.
package exit

import (
	"fmt"
	"strconv"

	"github.com/daqiri/daqiri-run/host/manual"
)

// Code is an exit code of the process. The values are part of the command-line interface and are never reused.
type Code int

// Exit codes by cause.
const (
	OK          Code = 0
	Script      Code = 1
	Usage       Code = 2
	Config      Code = 3
	Device      Code = 4
	Threshold   Code = 5
	Storage     Code = 6
	Tests       Code = 7
	Findings    Code = 8
	Internal    Code = 70
	Hangup      Code = 129
	Interrupted Code = 130
	Quit        Code = 131
	Killed      Code = 137
	Pipe        Code = 141
	Terminated  Code = 143
)

// texts describes each code, in the order of the help.
var texts = []struct {
	code Code
	name string
	text string
}{
	{OK, "ok", "everything ran to its end"},
	{Script, "script", "the script, or a handler of it, raised an error, or it could not be read"},
	{Usage, "usage", "the command line is wrong: an unknown flag or command, a bad value, or an argument that the script does not take"},
	{Config, "config", "a configuration has errors, or could not be read"},
	{Device, "device", "a session could not be opened or started: a missing device, right, port or library; or a stage could not be ended, as its device hangs"},
	{Threshold, "threshold", "a threshold of the script did not hold, or the one that every run has: errors == 0"},
	{Storage, "storage", "a writer could not begin, or not write everything (a name that is taken, disk full, folder gone), or a capture could not be read to its end"},
	{Tests, "tests", "daqiri-run test: a test failed, or all skipped; daqiri-run bench: a case failed"},
	{Findings, "findings", "daqiri-run doctor: a row failed; daqiri-run verify: a file differs from its manifest; daqiri-run summary A B: B is worse"},
	{Internal, "internal", "a bug in daqiri-run: a panic, a fatal error, or a ledger that does not add up; please report it"},
	{Hangup, "hangup", "ended by SIGHUP, after an orderly stop"},
	{Interrupted, "interrupted", "ended by Ctrl-C (SIGINT), after an orderly stop; at once after the second"},
	{Quit, "quit", "ended by SIGQUIT, after the stacks of all goroutines were written, and an orderly stop"},
	{Killed, "killed", "killed by SIGKILL, by a user or by the kernel when memory ran out; the last ledger is printed anyway"},
	{Pipe, "pipe", "stdout closed by its reader (SIGPIPE); orderly stop"},
	{Terminated, "terminated", "ended by SIGTERM, after an orderly stop"},
}

// Help is printed below the table of exit codes.
const Help = "When several causes meet, the first of these wins: internal, script, usage, config and device, a code other than 0 that " +
	"the script gave to `os.exit`, storage, threshold, pipe, a signal. A script may end with any code: `os.exit(CODE)`. With `os.exit(0)` " +
	"it declares a signal the intended end. After a fatal error and after SIGKILL the last ledger, at most a second old, is printed, " +
	"and is in `--summary-json` with `\"died\": true`. Files hold what had been written, and the last packet of a capture may be cut off."

// precedence lists the codes that override others, highest first.
var precedence = []Code{Internal, Script, Usage, Config, Device}

// Worse returns the code that takes precedence. Among codes not in precedence the newer one wins: callers add causes in ascending order.
func Worse(code, found Code) Code {
	for _, p := range precedence {
		if code == p || found == p {
			return p
		}
	}
	return found
}

// String returns the cause in one word, or the number of a code chosen by the script.
func (c Code) String() string {
	for _, e := range texts {
		if e.code == c {
			return e.name
		}
	}
	return fmt.Sprintf("exit code %d", int(c))
}

// Topic is the help topic "exit-codes".
var Topic = manual.Topic{Name: "exit-codes", Short: "the exit codes and what they mean", Parts: func() []manual.Part {
	table := &manual.Table{Columns: []string{"code", "cause", "when"}}
	for _, e := range texts {
		table.Rows = append(table.Rows, []string{strconv.Itoa(int(e.code)), e.name, e.text})
	}
	return []manual.Part{{Words: "They are distinct by cause, and none is ever used again for another."}, {Table: table}, {Words: Help}}
}}
