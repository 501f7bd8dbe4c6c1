package cli

import (
	"fmt"
	"strconv"

	"github.com/daqiri/daqiri-run/host/manual"
)

// ExitCode is how the process ends. The values are part of the command line's contract: none is ever reused.
type ExitCode int

// The exit codes, distinct by cause.
const (
	ExitOK          ExitCode = 0
	ExitScript      ExitCode = 1
	ExitUsage       ExitCode = 2
	ExitConfig      ExitCode = 3
	ExitDevice      ExitCode = 4
	ExitThreshold   ExitCode = 5
	ExitStorage     ExitCode = 6
	ExitTests       ExitCode = 7
	ExitFindings    ExitCode = 8
	ExitInternal    ExitCode = 70
	ExitHangup      ExitCode = 129
	ExitInterrupted ExitCode = 130
	ExitQuit        ExitCode = 131
	ExitKilled      ExitCode = 137
	ExitPipe        ExitCode = 141
	ExitTerminated  ExitCode = 143
)

// exitTexts says for each code, in words for the user, when it comes. The order is that of the help.
var exitTexts = []struct {
	code ExitCode
	name string
	text string
}{
	{ExitOK, "ok", "everything ran to its end"},
	{ExitScript, "script", "the script, or a handler of it, raised an error, or it could not be read"},
	{ExitUsage, "usage", "the command line is wrong: an unknown flag or command, a bad value, or an argument that the script does not take"},
	{ExitConfig, "config", "a configuration has faults, or could not be read"},
	{ExitDevice, "device", "a session could not be opened or started: a missing device, right, port or library; or a stage could not be ended, as its device hangs"},
	{ExitThreshold, "threshold", "a threshold of the script did not hold, or the one that every run has: errors == 0"},
	{ExitStorage, "storage", "a writer could not begin, or not write everything (a name that is taken, disk full, folder gone), or a capture could not be read to its end"},
	{ExitTests, "tests", "daqiri-run test: a test failed, or all skipped; daqiri-run bench: a case failed"},
	{ExitFindings, "findings", "daqiri-run doctor: a row failed; daqiri-run verify: a file is not what its manifest says; daqiri-run summary A B: B is worse"},
	{ExitInternal, "internal", "a fault of daqiri-run itself: a panic, a fatal error, or a ledger that does not add up; please report it"},
	{ExitHangup, "hangup", "ended by SIGHUP, after an orderly stop"},
	{ExitInterrupted, "interrupted", "ended by Ctrl-C (SIGINT), after an orderly stop; at once after the second"},
	{ExitQuit, "quit", "ended by SIGQUIT, after the stacks of all goroutines were written, and an orderly stop"},
	{ExitKilled, "killed", "killed by SIGKILL: by somebody, or by the kernel for want of memory; the last ledger is shown all the same"},
	{ExitPipe, "pipe", "stdout closed by its reader (SIGPIPE); orderly stop"},
	{ExitTerminated, "terminated", "ended by SIGTERM, after an orderly stop"},
}

// exitHelp stands below the table of exit codes.
const exitHelp = "When several causes meet, the first of these wins: internal, script, usage, config and device, a code other than 0 that " +
	"the script gave to `os.exit`, storage, threshold, pipe, a signal. A script may end with any code: `os.exit(CODE)`. With `os.exit(0)` " +
	"it says that a signal is how it is meant to end. After a fatal error and after SIGKILL the last ledger, at most a second old, is printed " +
	"all the same, and is in `--summary-json` with `\"died\": true`; files hold what had been written, and the last packet of a capture may be cut off."

// precedence lists the codes that win over others, the strongest first.
var precedence = []ExitCode{ExitInternal, ExitScript, ExitUsage, ExitConfig, ExitDevice}

// worse is the one of two codes that wins. Between those that precedence does not list the newer one does: callers
// add causes from weak to strong.
func worse(code, found ExitCode) ExitCode {
	for _, p := range precedence {
		if code == p || found == p {
			return p
		}
	}
	return found
}

// String is the cause in one word, or the number of a code that the script chose.
func (c ExitCode) String() string {
	for _, e := range exitTexts {
		if e.code == c {
			return e.name
		}
	}
	return fmt.Sprintf("exit code %d", int(c))
}

// exitTopic is daqiri-run help exit-codes.
var exitTopic = manual.Topic{Name: "exit-codes", Short: "the exit codes and what they mean", Parts: func() []manual.Part {
	table := &manual.Table{Columns: []string{"code", "cause", "when"}}
	for _, e := range exitTexts {
		table.Rows = append(table.Rows, []string{strconv.Itoa(int(e.code)), e.name, e.text})
	}
	return []manual.Part{{Words: "They are distinct by cause, and none is ever used again for another."}, {Table: table}, {Words: exitHelp}}
}}

// failure is an error with the code that it ends the process with. A silent one has been shown already.
type failure struct {
	code   ExitCode
	err    error
	silent bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail gives err an exit code; nil stays nil.
func fail(code ExitCode, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: code, err: err}
}

// ended is the end of a command that has said everything itself.
func ended(code ExitCode) error {
	if code == ExitOK {
		return nil
	}
	return &failure{code: code, err: fmt.Errorf("%s", code), silent: true}
}
