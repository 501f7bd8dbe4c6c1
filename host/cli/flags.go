package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// configFlags are the flags that change how configurations are read, shared by run, check and inspect.
type configFlags struct {
	set            []string
	source         []string
	engine, memory string
}

func (f *configFlags) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.set, "set", nil, "override a key of the configuration: `PATH=VALUE`, such as\ninterfaces.rx_port.rx.queues.0.batch_size=64 (repeatable)")
	fs.StringVar(&f.engine, "engine", "", "serve every interface with this `ENGINE`; loop needs no NIC and no root")
	fs.StringArrayVar(&f.source, "source", nil, "replay a capture (pcap, pcapng) on every receiving interface, or on one: `[INTERFACE=]FILE`, - being\nstandard input, with ,speed=2 or ,speed=max or ,rate=1Gbit/s or ,pps=1e6, and ,loops=3 or ,loops=forever (repeatable)")
	fs.StringVar(&f.memory, "memory", "", "`host` puts device and host_pinned regions into host memory")
}

// options validates the flags and converts them to parser options.
func (f *configFlags) options() (spec.Options, error) {
	opts := spec.Options{Engine: f.engine, Memory: f.memory, Verbs: preflight.HasVerbs}
	if err := oneOf("--engine", f.engine, schema.InterfaceEngines); err != nil {
		return opts, err
	}
	if err := oneOf("--memory", f.memory, []string{schema.KindHost}); err != nil {
		return opts, err
	}
	for _, arg := range f.source {
		s, err := spec.ParseSource(arg)
		if err != nil {
			return opts, exit.Fail(exit.Usage, fmt.Errorf("--source %w", err))
		}
		opts.Sources = append(opts.Sources, s)
	}
	if len(f.source) > 0 && f.engine != "" {
		return opts, exit.Fail(exit.Usage, fmt.Errorf("--source and --engine exclude each other: engine pcap serves a capture"))
	}
	for _, arg := range f.set {
		o, err := spec.ParseOverride(arg)
		if err != nil {
			return opts, exit.Fail(exit.Usage, fmt.Errorf("--set %w", err))
		}
		opts.Set = append(opts.Set, o)
	}
	return opts, nil
}

// sourceIsStdin reports whether a capture is read from standard input.
func (f *configFlags) sourceIsStdin() bool {
	return slices.ContainsFunc(f.source, func(arg string) bool {
		s, err := spec.ParseSource(arg)
		return err == nil && s.File == "-"
	})
}

// runFlags are the flags of the commands run and root.
type runFlags struct {
	config      configFlags
	env         []string
	cores       string
	logLevel    string
	logFormat   string
	summary     string
	summaryJSON string
	metrics     string
	top         bool
	progress    string
	report      string
	overwrite   bool
	inputs      []string // further input files of the command
	web         string
	attach      string
	otlp        string
	drain       string
	allowExec   bool
	interactive bool
}

// summaryForms are the accepted values of --summary.
var summaryForms = []string{"compact", "full", "none"}

func (f *runFlags) add(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringArrayVarP(&f.env, "env", "e", nil, "give the script's daqiri.args a `KEY=VALUE` (repeatable)")
	f.config.add(fs)
	fs.StringVar(&f.cores, "cores", "", "place worker threads: auto, or a `LIST` such as 2,4-7")
	fs.StringVar(&f.logLevel, "log-level", "", "log lines from this `LEVEL` on: debug, info (default), warn, error")
	fs.StringVar(&f.logFormat, "log-format", "", "`FORM` of log lines: text (default) or json")
	fs.StringVar(&f.summary, "summary", "compact", "`FORM` of the summary at the end: compact, full or none")
	fs.StringVar(&f.summaryJSON, "summary-json", "", "write the summary as JSON to this `FILE` as well")
	fs.BoolVar(&f.top, "top", false, "show every queue, stage, writer and source while it runs, with what holds the run back")
	fs.StringVar(&f.progress, "progress", "", "where stderr is not a terminal: a line with rates and drops every `DURATION`, such as 10s (SIGUSR2 asks for the\nwhole view of --top at any time)")
	fs.StringVar(&f.report, "report", "", "write a page of the run to this `FILE`.html: ledger, rates and losses over time, histograms; it needs no network")
	fs.BoolVar(&f.overwrite, "overwrite", false, "let the files of this run (--summary-json, --report, those of writers, of arrays, objects) replace ones\nthat are there; without it those stay, and the run reports what it does instead")
	fs.StringVar(&f.web, "web", "", "show the same page live in browsers, at this `ADDRESS`: :8080 for this machine alone, 0.0.0.0:8080 for all")
	fs.StringVar(&f.attach, "attach", "", "let others of this user attach at this `FILE`, a unix socket: 'daqiri-run attach FILE' opens a prompt on this job,\nor looks on; --attach alone takes a file of its own, --attach=FILE names one")
	fs.Lookup("attach").NoOptDefVal = ownSocket
	fs.StringVar(&f.metrics, "metrics", "", "show metrics to Prometheus at this `ADDRESS`: :9464 for this machine alone,\n0.0.0.0:9464 for all")
	fs.StringVar(&f.otlp, "otlp", "", "export metrics by OTLP over HTTP to the collector at this `URL`; so does\nOTEL_EXPORTER_OTLP_ENDPOINT")
	fs.StringVar(&f.drain, "drain", "", "continue to send what is queued at the end for at most this `DURATION`, such as 500ms (default: the configuration's\ndrain, 2s)")
	fs.BoolVar(&f.allowExec, "allow-exec", false, "let the script start programs (os.execute, io.popen)")
}

// check validates everything that does not depend on the script, configures the logger, and returns the options for every daqiri.open. inputs are
// files that the run reads, in addition to --source.
func (f *runFlags) check(g *state.Global, inputs ...string) (bindings.OpenOptions, error) {
	open := bindings.OpenOptions{Cores: f.cores, KeepLogLevel: f.logLevel != "", Overwrite: f.overwrite}
	config, err := f.config.options()
	if err != nil {
		return open, err
	}
	if f.drain != "" {
		if _, err := spec.ParseDuration(f.drain); err != nil {
			return open, exit.Fail(exit.Usage, fmt.Errorf("--drain: %w", err))
		}
		config.Set = append(config.Set, spec.Override{Path: "drain", Text: f.drain})
	}
	open.Set, open.Engine, open.Memory, open.Sources = config.Set, config.Engine, config.Memory, config.Sources
	for _, s := range open.Sources {
		inputs = append(inputs, s.File)
	}
	if _, err := preflight.ParseCores(f.cores); err != nil {
		return open, exit.Fail(exit.Usage, fmt.Errorf("--cores: %w", err))
	}
	if f.progress != "" {
		if ns, err := spec.ParseDuration(f.progress); err != nil || ns < 1e6 {
			return open, exit.Fail(exit.Usage, fmt.Errorf("--progress %s: a time from 1ms on is expected, such as 10s", f.progress))
		}
	}
	if err := oneOf("--summary", f.summary, summaryForms); err != nil {
		return open, err
	}
	if err := claimOutputs(f.overwrite, inputs, output{"--summary-json", f.summaryJSON}, output{"--report", f.report}); err != nil {
		return open, err
	}
	return open, exit.Fail(exit.Usage, g.ConfigureLogger(f.logLevel, f.logFormat))
}

// variables parses the KEY=VALUE pairs of -e.
func (f *runFlags) variables() (map[string]string, error) {
	env := map[string]string{}
	for _, arg := range f.env {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, exit.Fail(exit.Usage, fmt.Errorf("-e %q is not KEY=VALUE", arg))
		}
		env[key] = value
	}
	return env, nil
}

// oneOf refuses a value that is neither empty nor in known.
func oneOf(flag, value string, known []string) error {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	hint := ""
	if near := suggest.Nearest(value, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return exit.Fail(exit.Usage, fmt.Errorf("%s %q: not one of %s%s", flag, value, strings.Join(known, ", "), hint))
}
