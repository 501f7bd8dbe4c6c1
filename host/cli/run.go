package cli

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/manual"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/stdlib"
)

// newRun returns the command "run".
func newRun(g *state.Global) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] SCRIPT [ARGS]",
		Short: "run a script (what daqiri-run SCRIPT does)",
		Long: `run runs a Lua script. Flags stand before SCRIPT; what follows it is the script's own, flags too: see
'daqiri-run SCRIPT --help' for those of a script that uses daqiri.args.`,
		Args:              needs("a script to run"),
		ValidArgsFunction: scriptThenFlags,
		RunE: func(_ *cobra.Command, args []string) error {
			which, _ := find(args[0])
			return run(g, &f, which, args[1:], false)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// runOrPrompt implements the root command: a script, a prompt, or a script followed by a prompt.
func runOrPrompt(g *state.Global, f *runFlags, cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return run(g, f, found{}, nil, true)
	}
	if ext := filepath.Ext(args[0]); ext == ".yaml" || ext == ".yml" {
		return exit.Fail(exit.Usage, fmt.Errorf("%s is a configuration, which a script opens: run that script, or print the file with "+
			"'daqiri-run check' or 'inspect'", args[0]))
	}
	which, known := find(args[0])
	if !known && filepath.Ext(args[0]) == "" {
		hint := ""
		if near := suggest.Nearest(args[0], append(commandNames(cmd.Root()), scriptWords()...)); near != "" {
			hint = fmt.Sprintf(" (did you mean '%s'?)", near)
		}
		return exit.Fail(exit.Usage, fmt.Errorf("%s: neither a script nor a command%s", args[0], hint))
	}
	return run(g, f, which, args[1:], f.interactive)
}

// run runs a script, then a prompt if requested, and prints the summary.
func run(g *state.Global, f *runFlags, which found, args []string, prompt bool) error {
	open, err := f.check(g, append(f.inputs, which.path)...)
	if err != nil {
		return err
	}
	if prompt && f.config.sourceIsStdin() {
		return exit.Fail(exit.Usage, fmt.Errorf("--source -: the prompt reads standard input: name the capture, or a FIFO"))
	}
	if err := f.attachTaken(which); err != nil {
		return err
	}
	env, err := f.variables()
	if err != nil {
		return err
	}
	open.Shipped = which.shipped
	r := &runner{g: g, flags: f, script: which, started: time.Now(), con: newConsole(g)}
	opts := script.Options{Path: which.path, Args: args, Env: env, Open: open, AllowExec: f.allowExec, Stdlib: stdlib.Files,
		SearchPath: g.Env["DAQIRI_PATH"], Stdout: r.con.stdout, Stderr: r.con.stderr, Screen: func() picture.Screen { return screenOf(g) }, Log: logTo(g.Logger), LogLevel: g.LogLevel}
	opts.Interactive, opts.Help, opts.Search = g.Interactive(), explain, func(words string) string { return searchText(nil, words) }
	if prompt {
		r.prompt = repl.New(repl.Options{Interactive: g.Interactive(), Stdin: g.Stdin, Stdout: g.Stdout, Stderr: g.Stderr,
			Greeting: greeting(), HistoryFile: historyFile(g), Interrupt: r.interruptChunk})
		r.con.underPrompt(g, r.prompt)
		opts.Prompt = r.prompt
	}
	g.Logger.SetOutput(r.con.stderr)
	defer g.Logger.SetOutput(g.Stderr)
	if r.program, err = script.New(opts); err != nil {
		return exit.Fail(exit.Device, err)
	}
	r.con.stdout.broken = func() { r.program.Stop("the output has no reader any more") }
	return r.run()
}

// attachTaken refuses a nonexistent script that was meant as the file of --attach, whose value must follow =.
func (f *runFlags) attachTaken(which found) error {
	if f.attach != ownSocket || which.shipped != nil || which.path == "" || strings.HasSuffix(which.path, ".lua") {
		return nil
	}
	if info, err := os.Stat(which.path); err == nil && info.Mode().IsRegular() {
		return nil
	}
	return exit.Fail(exit.Usage, fmt.Errorf("%s is not a script: the file to attach at is named --attach=%[1]s", which.path))
}

// explain returns the description of a name, or the contents of a page; help(x) prints it at the prompt.
func explain(word string) string {
	return cmp.Or(topicText(word), manual.LuaContents(word), nameText(word))
}

// greeting returns the first line of a prompt.
func greeting() string {
	return "daqiri-run " + bindings.Version + ": Lua. s = daqiri.open() opens a session, help WORDS explains, Tab completes names, Ctrl-C ends what runs, " +
		"Ctrl-D the prompt."
}

// interruptChunk interrupts the running chunk of the prompt.
func (r *runner) interruptChunk() { r.program.Interrupt() }

// historyFile returns the prompt's history file, or "" under a test.
func historyFile(g *state.Global) string {
	dir := g.Env["XDG_STATE_HOME"]
	switch {
	case g.Env["DAQIRI_TEST"] != "" || dir == "" && g.Env["HOME"] == "":
		return ""
	case dir == "":
		dir = filepath.Join(g.Env["HOME"], ".local", "state")
	}
	return filepath.Join(dir, "daqiri-run", "history")
}

// logTo returns a function that passes the script's log lines to the logger.
func logTo(l *logrus.Logger) func(level, text string, fields map[string]any) {
	return func(level, text string, fields map[string]any) {
		parsed, err := logrus.ParseLevel(level)
		if err != nil {
			parsed = logrus.InfoLevel
		}
		l.WithFields(fields).Log(parsed, text)
	}
}

// hash returns the SHA-256 of a script in hex, or "" if it can't be read.
func (f found) hash() string {
	text, err := f.text()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}
