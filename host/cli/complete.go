package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Shell completion. The shell runs this program at each Tab, so completions open nothing but folders.

// flagValues lists the values of flags with a fixed set. Empty list: no completion, not even files.
var flagValues = map[string][]string{
	"engine":     schema.InterfaceEngines,
	"memory":     {schema.KindHost},
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
	"window":     windowNames(),
	"points":     {"1024", "4096", "16384"},
	"rate":       nil,
	"offset":     nil,
	"by":         nil,
}

// addCompletion registers the completions of flag values for the commands below root, and describes the command that prints the shell's
// completion script.
func addCompletion(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		for flag, values := range flagValues {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails the second time
			}
		}
	}
	root.InitDefaultCompletionCmd()
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		cmd.Short = "print what makes a shell complete commands, flags and scripts with Tab"
		cmd.Long = cmd.Short + ". For bash, with the package bash-completion:\n\n  source <(daqiri-run completion bash)"
	}
}

// onlyFirst completes only the first argument; later arguments may be any files, such as a script's.
func onlyFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, word)
	}
}

// filesNamed completes files with these extensions, and folders. It lists them itself because cobra can't combine an extension filter with
// command names.
func filesNamed(extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) (found []string, then cobra.ShellCompDirective) {
		then = cobra.ShellCompDirectiveNoFileComp
		dir, prefix := filepath.Split(word)
		from := dir
		if from == "" {
			from = "."
		}
		entries, _ := os.ReadDir(from) // an unreadable folder yields nothing
		for _, e := range entries {
			name := e.Name()
			info, err := os.Stat(filepath.Join(from, name)) // follows links
			switch {
			case err != nil || !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") && prefix == "":
			case info.IsDir():
				found = append(found, dir+name+"/")
				then |= cobra.ShellCompDirectiveNoSpace // the word may continue
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

// scriptsAndFiles completes files and, after the first letter, shipped scripts.
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

// scriptThenFlags completes a script, then its declared arguments and their values.
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

// argValues returns the values of an argument: its choices, its default, or files.
func argValues(a script.Arg) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(a.Choices) > 0:
		return a.Choices, cobra.ShellCompDirectiveNoFileComp
	case a.Type == "number":
		return []string{a.Default}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
