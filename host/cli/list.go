package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/stdlib"
)

// listed is a script in the output of list or info.
type listed struct {
	Name string `json:"name"` // word that runs it
	script.Description
	Configuration string `json:"configuration,omitempty"`
	Fault         string `json:"fault,omitempty"` // syntax error
}

// newList returns the command "list".
func newList(g *state.Global) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [DIR...]",
		Short: "list the scripts of the program, or of folders",
		Long: `list prints a line for each script that is part of the program, or lies in one of the folders, and what it does.
'daqiri-run NAME' runs a script of the program, 'info NAME' prints its arguments, 'new FILE --from NAME' makes a copy to change.`,
		RunE: func(_ *cobra.Command, dirs []string) error {
			all, err := scriptsIn(dirs)
			if err != nil {
				return exit.Fail(exit.Usage, err)
			}
			if asJSON {
				return writeJSON(g.Stdout, all)
			}
			return exit.Fail(exit.Storage, listText(g.Stdout, all, len(dirs) == 0))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// scriptsIn describes the scripts of folders; the default is the program's scripts.
func scriptsIn(dirs []string) ([]listed, error) {
	all := []listed{}
	for _, name := range scriptWords() {
		if len(dirs) > 0 {
			break
		}
		f := shipped(name + ".lua")
		all = append(all, describeListed(name, f))
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
		if err != nil || len(files) == 0 {
			return nil, cmp.Or(err, fmt.Errorf("%s: no script (NAME.lua) is there", dir))
		}
		for _, file := range files {
			all = append(all, describeListed(file, found{path: file}))
		}
	}
	return all, nil
}

func describeListed(name string, f found) listed {
	d, err := f.describe()
	l := listed{Name: name, Description: d, Configuration: d.Configuration()}
	if err != nil {
		l.Fault = err.Error()
	}
	return l
}

func listText(w io.Writer, all []listed, program bool) error {
	wide := 0
	for _, l := range all {
		wide = max(wide, len(l.Name))
	}
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "  %-*s  %s\n", wide, l.Name, cmp.Or(l.Fault, l.oneLine()))
	}
	if program {
		var modules []string
		for _, name := range stdlib.Names() {
			modules = append(modules, fmt.Sprintf("%q", "daqiri."+name))
		}
		fmt.Fprintf(&b, "\nmodules for require: \"daqiri\", \"bit\", %s\n", strings.Join(modules, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// oneLine returns the first line of the summary, with a mark if the sentence continues; info prints the rest.
func (l listed) oneLine() string {
	if len(l.Words) == 0 || strings.HasPrefix(l.Words[0]+" ", " ") || strings.HasSuffix(l.Summary, ".") {
		return l.Summary
	}
	return strings.TrimRight(l.Summary, ",:;") + " …"
}

// newInfo returns the command "info".
func newInfo(g *state.Global) *cobra.Command {
	var asJSON, source bool
	cmd := &cobra.Command{
		Use:   "info SCRIPT",
		Short: "tell what a script does, its arguments and its configuration, without running it",
		Long: `info reads a script, a file or one of the program (daqiri-run list), and prints what it does, how it is started, its
arguments with types, units and defaults, and the configuration that it opens. Nothing is run.`,
		Args:              oneScript,
		ValidArgsFunction: onlyFirst(scriptsAndFiles),
		RunE: func(_ *cobra.Command, args []string) error {
			f, ok := find(args[0])
			if !ok {
				return noScript(args[0])
			}
			l := describeListed(strings.TrimSuffix(f.path, ".lua"), f)
			if f.shipped == nil {
				l.Name = f.path
			}
			switch {
			case source:
				text, err := f.text()
				if err == nil {
					_, err = io.WriteString(g.Stdout, text)
				}
				return exit.Fail(exit.Storage, err)
			case asJSON:
				return writeJSON(g.Stdout, l)
			case l.Fault != "":
				return exit.Fail(exit.Script, fmt.Errorf("%s", l.Fault))
			}
			_, err := io.WriteString(g.Stdout, l.text())
			return exit.Fail(exit.Storage, err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&source, "source", false, "print the script itself")
	return cmd
}

// oneScript checks for exactly one argument, a script.
func oneScript(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.Fail(exit.Usage, fmt.Errorf("one script at a time, not %d", len(args)))
	}
	return needs("a script (daqiri-run list)")(cmd, args)
}

// text formats the output of info.
func (l listed) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", l.Name, l.Summary)
	for _, line := range l.Words {
		fmt.Fprintf(&b, "%s\n", line)
	}
	if l.Configuration != "" {
		fmt.Fprintf(&b, "\nconfiguration: %s\n", l.Configuration)
	}
	if len(l.Args) == 0 {
		b.WriteString("\nno arguments\n")
		return b.String()
	}
	b.WriteString("\narguments:\n")
	wide := 0
	for _, a := range l.Args {
		wide = max(wide, len(argLeft(a)))
	}
	for _, a := range l.Args {
		fmt.Fprintf(&b, "  %-*s  %s\n", wide, argLeft(a), strings.Join(argNotes(a), "; "))
	}
	return b.String()
}

// argNotes lists notes on an argument.
func argNotes(a script.Arg) []string {
	notes := []string{a.Help}
	if len(a.Choices) > 0 {
		notes = append(notes, "one of "+strings.Join(a.Choices, ", "))
	}
	if a.Unit != "" {
		notes = append(notes, "in "+a.Unit)
	}
	switch {
	case a.Required:
		notes = append(notes, "required")
	case a.Default != "":
		notes = append(notes, "default "+a.Default)
	}
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" })
}

// writeJSON prints a value as JSON.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return exit.Fail(exit.Storage, enc.Encode(v))
}

// argLeft formats an argument as it is typed.
func argLeft(a script.Arg) string {
	if a.Type == "boolean" {
		return "--" + a.Name
	}
	return "--" + a.Name + " " + strings.ToUpper(a.Type)
}
