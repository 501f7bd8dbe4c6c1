package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/look"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/samples"
	"github.com/daqiri/daqiri-run/runtime/signal"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/stdlib"
)

// lookFlags are the flags of look.
type lookFlags struct {
	format, samples, window, rate, seconds, png, web string
	by                                               []string
	offset, points                                   int
	text, terminal                                   bool
}

// newLook returns the command "look", which shows pictures of samples.
func newLook(g *state.Global) *cobra.Command {
	var f lookFlags
	cmd := &cobra.Command{
		Use:   "look SOURCE [--samples TYPE] [--format FORMAT]",
		Short: "show pictures of the samples in a capture, a file or a live stream",
		Long: `look reads the samples of SOURCE and shows spectrum, waterfall, histogram, time series, constellation, missing samples and power by stream
on a page in browsers, until Ctrl-C. It prints the address of the page. With --text, --terminal or --png it prints or draws them instead:

  daqiri-run look :7200 --format rad.lua --samples ci12 --by antenna
  daqiri-run look rad.pcap --format rad.lua --samples ci12 --by antenna --png pictures
  daqiri-run look :7200 --format rad.lua --samples ci12 --by antenna --seconds 5
  daqiri-run look frames.raw --samples ci16le --rate 2.4e6 --text

SOURCE is a capture (pcap or pcapng, - is standard input), a block file, a file of samples, a Linux interface, [HOST]:PORT or
udp://HOST:PORT. Samples begin behind the header of FORMAT, which may declare their type, otherwise with the innermost payload. If FORMAT has a sequence, packets
are put into order and missing samples are marked; otherwise each packet is a run of its own. No transform has samples of both sides of
a gap. Levels are dBFS: a tone of full scale has 0 dB, that of floating-point values is 1.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Fail(exit.Usage, fmt.Errorf("look reads one source, and there are %d", len(args)))
			}
			return needs("what to draw: a capture, a file, an interface, [HOST]:PORT or udp://HOST:PORT")(cmd, args)
		},
		ValidArgsFunction: onlyFirst(func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			names, _ := interfaceNames(cmd, args, word)
			return names, cobra.ShellCompDirectiveDefault
		}),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(g, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.samples, "samples", "", "the `TYPE` of the samples, such as ci16le (daqiri-run help samples); by default what FORMAT or a block file states")
	flags.StringVar(&f.format, "format", "", "the `FORMAT` of the packets: a format of the library or a file NAME.lua")
	flags.IntVar(&f.offset, "offset", 0, "`BYTES` between the header and the samples, or in front of those of a file")
	flags.StringSliceVar(&f.by, "by", nil, "the `FIELD` of the format that separates streams; by default those of its sequence")
	flags.StringVar(&f.rate, "rate", "", "samples per second, `RATE`: axes have Hz and seconds; by default what FORMAT states")
	flags.StringVar(&f.seconds, "seconds", "", "read for `N` seconds; by default a file to its end, and a live source until Ctrl-C, without a page 2 seconds")
	flags.IntVar(&f.points, "points", 0, "`N` points of a transform, a power of two; by default at most 4096")
	flags.StringVar(&f.window, "window", signal.Windows[0].Name, "the `WINDOW` of a transform: "+strings.Join(windowNames(), ", "))
	flags.BoolVar(&f.text, "text", false, "print the figures in words")
	flags.BoolVar(&f.terminal, "terminal", false, "draw on the terminal")
	flags.StringVar(&f.web, "web", "127.0.0.1:0", "show the page at this `ADDRESS`: :8080 for this machine alone, 0.0.0.0:8080 for all; by default at a free port of this machine")
	flags.StringVar(&f.png, "png", "", "write the pictures into the folder `DIR`")
	_ = cmd.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return luaformat.LibraryNames(stdlib.Files), cobra.ShellCompDirectiveDefault
	})
	_ = cmd.MarkFlagDirname("png")
	return cmd
}

// windowNames lists the windows of transforms.
func windowNames() (names []string) {
	for _, w := range signal.Windows {
		names = append(names, w.Name)
	}
	return names
}

// options returns what the flags select.
func (f *lookFlags) options(source string) (o look.Options, err error) {
	o = look.Options{Source: source, Offset: f.offset, Points: f.points}
	if f.samples != "" {
		if o.Type, err = samples.Parse(f.samples); err != nil {
			return o, fmt.Errorf("--samples: %w", err)
		}
	}
	if o.Window, err = signal.WindowNamed(f.window); err != nil {
		return o, fmt.Errorf("--window: %w", err)
	}
	if f.points != 0 {
		if _, err := signal.NewFFT(f.points); err != nil {
			return o, fmt.Errorf("--points: %w", err)
		}
	}
	if f.offset < 0 {
		return o, fmt.Errorf("--offset: %d is not a valid number of bytes (expected 0 or more)", f.offset)
	}
	if f.rate != "" {
		if o.Rate, err = strconv.ParseFloat(f.rate, 64); err != nil || !(o.Rate > 0) || o.Rate > 1e15 {
			return o, fmt.Errorf("--rate: %q is not a valid rate (expected samples per second, such as 2.4e6)", f.rate)
		}
	}
	if f.seconds != "" {
		ns, err := spec.ParseDuration(withSeconds(f.seconds))
		if err != nil {
			return o, fmt.Errorf("--seconds: %w", err)
		}
		o.Limit = time.Duration(ns)
	}
	return o, f.fields(&o)
}

// withSeconds adds the unit to a number without one.
func withSeconds(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text + "s"
	}
	return text
}

// fields reads the format and the names of its fields.
func (f *lookFlags) fields(o *look.Options) (err error) {
	o.By = f.by
	if f.format == "" {
		if len(f.by) > 0 {
			return fmt.Errorf("--by %s: name the format that has the field: --format", f.by[0])
		}
		return nil
	}
	if o.Format, err = findFormat(f.format); err != nil {
		return err
	}
	for _, name := range f.by {
		if x := o.Format.Named(name); x == nil || x.Const != nil {
			hint := ""
			if near := suggest.Nearest(name, o.Format.Names()); near != "" {
				hint = fmt.Sprintf(" (did you mean '%s'?)", near)
			}
			return fmt.Errorf("--by %s: format %s has no such field%s", name, o.Format.Spec.Name, hint)
		}
	}
	return nil
}

// run reads the source and draws it.
func (f *lookFlags) run(g *state.Global, source string) error {
	o, err := f.options(source)
	if failure := (*exit.Failure)(nil); err != nil && !errors.As(err, &failure) {
		return exit.Fail(exit.Usage, err)
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals, release := g.Signals()
	defer release()
	go func() {
		select {
		case <-signals: // the pictures show what was read until then
			cancel()
		case <-ctx.Done():
		}
	}()
	if f.png == "" && !f.text && !f.terminal {
		return f.show(ctx, g, o)
	}
	r, err := look.Read(ctx, o)
	if err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	return errors.Join(f.draw(g, r), exit.Fail(exit.Storage, r.Err))
}

// show shows the source on a page until ctx is done.
func (f *lookFlags) show(ctx context.Context, g *state.Global, o look.Options) error {
	page, err := look.OpenPage(f.web, o.Source)
	if err != nil {
		return exit.Fail(exit.Usage, fmt.Errorf("--web: %w", err))
	}
	defer page.Close()
	o.Update = page.Show
	if _, err := fmt.Fprintln(g.Stdout, page.URL()); err != nil {
		return exit.Fail(exit.Pipe, err)
	}
	r, err := look.Read(ctx, o)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil: // a live source was interrupted
		return exit.Fail(exit.Storage, r.Err)
	}
	if err := r.Check(); err != nil {
		return err
	}
	if err := page.Complete(r); err != nil {
		return exit.Fail(exit.Internal, err)
	}
	<-ctx.Done()
	return exit.Fail(exit.Storage, r.Err)
}

// draw prints or draws what the flags select.
func (f *lookFlags) draw(g *state.Global, r *look.Result) error {
	if f.png != "" {
		files, err := r.PNG(f.png)
		if err != nil {
			return exit.Fail(exit.Storage, err)
		}
		for _, name := range files {
			fmt.Fprintln(g.Stdout, name)
		}
	}
	if f.terminal {
		if err := r.Terminal(g.Stdout, screenOf(g)); err != nil {
			return exit.Fail(exit.Pipe, err)
		}
	} else if f.text {
		return exit.Fail(exit.Pipe, r.Text(g.Stdout))
	}
	return nil
}
