package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/attach"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/listen"
)

// ownSocket selects a socket named by the job's process id in the user's socket folder.
const ownSocket = "auto"

// listenForOthers opens the socket for --attach.
func (r *runner) listenForOthers() error {
	path := r.flags.attach
	if path == "" {
		return nil
	}
	if path == ownSocket {
		dir, own := listen.SocketFolder(r.g.Env["XDG_RUNTIME_DIR"])
		if err := listen.Folder(dir, own); err != nil {
			return exit.Fail(exit.Usage, fmt.Errorf("--attach: %w", err))
		}
		path = filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock")
	}
	log := logrus.New() // like the process's logger, but without echoing a client's own lines
	log.SetOutput(r.con.stderr.alone())
	log.SetFormatter(r.g.Logger.Formatter)
	log.SetLevel(r.g.Logger.GetLevel())
	s, err := attach.Listen(path, attach.Options{Version: bindings.Version, Script: r.script.path, Serve: r.program.Attach,
		Log: func(text string, fields map[string]any) { log.WithFields(fields).Info(text) }})
	if err != nil {
		return exit.Fail(exit.Usage, fmt.Errorf("--attach: %w", err))
	}
	r.others = s
	r.otherLine, r.otherView = summary.NewLive(r.program.Shared(), false), summary.NewTop(r.program.Shared(), summary.Style{})
	r.con.stdout.alsoTo(s)
	r.con.stderr.alsoTo(s)
	r.g.Logger.Info("others of this user may attach: daqiri-run attach " + s.Path())
	return nil
}

// sendToClients sends the live line and the view to attached clients, once per second.
func (r *runner) sendToClients() {
	if r.others != nil && r.others.Watched() {
		now := time.Now()
		r.others.Show(r.otherLine.Line(now), r.otherView.Text(now))
	}
}

// closeOthers disconnects all clients.
func (r *runner) closeOthers() {
	if r.others != nil {
		r.others.Close()
	}
}

// newAttach returns the command "attach".
func newAttach(g *state.Global) *cobra.Command {
	var view bool
	cmd := &cobra.Command{
		Use:   "attach [FILE]",
		Short: "open a prompt on a job that runs, or look on",
		Long: `attach opens a prompt on a job of the same user that was started with --attach, behind the socket FILE; without FILE on the only job that
was started with --attach alone. Lines run on the job's main task while that waits; what was typed is in the job's log. One at a time may
type. --view looks on: everything that moves, as --top shows it. The key t changes to one line and back, q leaves.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			path, err := jobSocket(g, path)
			if err != nil {
				return exit.Fail(exit.Usage, err)
			}
			if view {
				return lookOn(g, path)
			}
			return typeInto(g, path)
		},
	}
	cmd.Flags().BoolVar(&view, "view", false, "look on, and change nothing")
	return cmd
}

// jobSocket returns the given socket, or the only one in the user's folder.
func jobSocket(g *state.Global, path string) (string, error) {
	if path != "" {
		return path, nil
	}
	dir, _ := listen.SocketFolder(g.Env["XDG_RUNTIME_DIR"])
	files, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is valid
	switch len(files) {
	case 0:
		return "", errors.New("no job listens: start one with --attach, or name its socket")
	case 1:
		return files[0], nil
	}
	return "", fmt.Errorf("there are several jobs: name one of %s", strings.Join(files, ", "))
}

// typeInto runs a prompt on a job.
func typeInto(g *state.Global, path string) error {
	c, err := attach.Dial(path, "prompt", bindings.Version)
	if err != nil {
		return exit.Fail(exit.Device, err)
	}
	defer c.Close()
	p := repl.New(repl.Options{Interactive: g.Interactive(), Stdin: g.Stdin, Stdout: g.Stdout, Stderr: g.Stderr, HistoryFile: historyFile(g), Interrupt: c.Interrupt,
		Greeting: fmt.Sprintf("a prompt on %s (process %d); help WORDS explains, Ctrl-D leaves, the job continues.", cmp.Or(c.Script, "a prompt"), c.PID)})
	signals, release := g.Signals()
	defer release()
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGINT || !p.Interrupt() {
					c.Close() // ends the prompt
				}
			case <-over:
				return
			}
		}
	}()
	if err := p.Start(); err != nil {
		fmt.Fprintln(g.Stderr, state.VisibleLines(err.Error()))
	}
	out := p.Writer(g.Stdout)
	gone := c.Prompt(p, func(text string) { _, _ = io.WriteString(out, text) })
	err = p.Close()
	switch {
	case gone:
		fmt.Fprintln(g.Stderr, "\nthe job has ended, or was left")
	case p.Failed():
		return exit.Ended(exit.Script)
	}
	return exit.Fail(exit.Internal, err)
}

// lookOn shows a job's state until the job or the user ends it.
func lookOn(g *state.Global, path string) error {
	c, err := attach.Dial(path, "view", bindings.Version)
	if err != nil {
		return exit.Fail(exit.Device, err)
	}
	defer c.Close()
	signals, release := g.Signals()
	defer release()
	w := &watcher{whole: true, g: g}
	if g.StderrTTY {
		w.screen = summary.NewScreen(g.Stderr, func() (int, int) { return terminalSize(g.Stderr) })
		defer w.screen.Clear()
	}
	go func() {
		<-signals
		c.Close()
	}()
	if in, ok := g.Stdin.(*os.File); ok && g.StdinTTY && w.screen != nil {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return exit.Fail(exit.Device, err)
		}
		defer func() { _ = term.Restore(int(in.Fd()), before) }()
		go w.keys(in, c.Close)
	}
	return exit.Fail(exit.Device, c.Watch(w.show, nil))
}

// watcher is the screen of a viewer.
type watcher struct {
	g      *state.Global
	screen *summary.Screen // nil: line by line, like a log

	mu         sync.Mutex
	whole      bool // full view instead of one line
	line, view string
}

// show displays an update.
func (w *watcher) show(line, view string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line, w.view = line, view
	w.draw()
}

func (w *watcher) draw() {
	text := w.line
	if w.whole && w.view != "" {
		text = w.view
	}
	switch {
	case text == "":
	case w.screen == nil:
		fmt.Fprintln(w.g.Stdout, strings.TrimRight(text, "\n"))
	default:
		w.screen.Show(strings.TrimRight(text, "\n") + "\nt: everything or one line, q: leave")
	}
}

// keys reads the keyboard: t toggles the view; q, Ctrl-C and Ctrl-D leave.
func (w *watcher) keys(in io.Reader, leave func()) {
	key := make([]byte, 1)
	for {
		if _, err := in.Read(key); err != nil || strings.IndexByte("q\x03\x04", key[0]) >= 0 {
			leave()
			return
		}
		if key[0] == 't' {
			w.mu.Lock()
			w.whole = !w.whole
			w.draw()
			w.mu.Unlock()
		}
	}
}
