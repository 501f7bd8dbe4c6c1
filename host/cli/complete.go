package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// What the shell's Tab offers. The shell runs this program for that, so nothing here opens more than a folder.

// flagValues are what a flag takes, where that can be listed. An empty list: nothing can be offered, not even files.
var flagValues = map[string][]string{
	"engine":     spec.InterfaceEngines,
	"memory":     {spec.KindHost},
	"cores":      {"auto"},
	"log-level":  {"debug", "info", "warn", "error"},
	"log-format": {"text", "json"},
	"summary":    summaryForms,
	"set":        nil,
	"env":        nil,
	"metrics":    {":9464", "0.0.0.0:9464"},
	"web":        {":8080", "0.0.0.0:8080"},
	"progress":   {"10s", "1s"},
	"otlp":       {"http://localhost:4318"},
	"jobs":       nil,
	"timeout":    nil,
	"run":        nil,
	"seconds":    nil,
}

// addCompletion gives the commands below root the completion of their flags' values, and help the line of the command that prints
// the shell's part of it.
func addCompletion(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		for flag, values := range flagValues {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // it fails the second time
			}
		}
	}
	root.InitDefaultCompletionCmd()
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		cmd.Short = "print what makes a shell complete commands, flags and scripts with Tab"
		cmd.Long = cmd.Short + ". For bash, with the package bash-completion:\n\n  source <(daqiri-run completion bash)"
	}
}

// onlyFirst completes the first argument; those behind it are files of any kind, as a script's arguments may be.
func onlyFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, word)
	}
}

// filesNamed completes files with one of these extensions, and folders, which may have some. It lists them itself: a list of
// extensions could not stand beside the names of commands.
func filesNamed(extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) (found []string, then cobra.ShellCompDirective) {
		then = cobra.ShellCompDirectiveNoFileComp
		dir, prefix := filepath.Split(word)
		from := dir
		if from == "" {
			from = "."
		}
		entries, _ := os.ReadDir(from) // a folder that can't be read offers nothing
		for _, e := range entries {
			name := e.Name()
			info, err := os.Stat(filepath.Join(from, name)) // of what a link leads to
			switch {
			case err != nil || !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") && prefix == "":
			case info.IsDir():
				found = append(found, dir+name+"/")
				then |= cobra.ShellCompDirectiveNoSpace // the word goes on
			case hasExtension(name, extensions):
				found = append(found, dir+name)
			}
		}
		return found, then
	}
}

func hasExtension(name string, extensions []string) bool {
	for _, ext := range extensions {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

// scriptsAndFiles completes scripts of the program, once a letter is there, and files.
func scriptsAndFiles(cmd *cobra.Command, args []string, word string) (list []string, then cobra.ShellCompDirective) {
	for _, name := range scriptWords() {
		if f := shipped(name + ".lua"); word != "" && strings.HasPrefix(name, word) {
			d, _ := f.describe()
			list = append(list, cobra.CompletionWithDesc(name, d.Summary))
		}
	}
	files, then := filesNamed(".lua")(cmd, args, word)
	return append(list, files...), then
}

// scriptThenFlags completes a script, and behind it the arguments that it declares and their values.
func scriptThenFlags(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return scriptsAndFiles(cmd, args, word)
	}
	f, _ := find(args[0])
	d, err := f.describe()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if name, ok := strings.CutPrefix(args[len(args)-1], "--"); ok && len(args) > 1 && !strings.HasPrefix(word, "-") {
		for _, a := range d.Args {
			if a.Name == name && a.Type != "boolean" {
				return argValues(a)
			}
		}
	}
	if !strings.HasPrefix(word, "-") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	list := []string{cobra.CompletionWithDesc("--help", "print the script's arguments")}
	for _, a := range d.Args {
		list = append(list, cobra.CompletionWithDesc("--"+a.Name, strings.Join(argNotes(a), "; ")))
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// argValues are what an argument takes: its choices, or its default, or files.
func argValues(a script.Arg) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(a.Choices) > 0:
		return a.Choices, cobra.ShellCompDirectiveNoFileComp
	case a.Type == "number":
		return []string{a.Default}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
