package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/manual"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// topics are the manual pages: help topics, and documents in docs/.
var topics = []manual.Topic{manual.Config, manual.Conditions, manual.Fields, manual.Formats, manual.GPUNetIO, manual.Ledger, manual.Metrics, manual.Samples, exit.Topic}

// parts maps headings that help accepts as words to their topics.
var parts = map[string]manual.Topic{"thresholds": manual.Conditions, "reasons": manual.Ledger}

// newTopics returns the help topics, except those that are commands.
func newTopics() []*cobra.Command {
	var list []*cobra.Command
	for _, t := range topics {
		if t.Name == manual.Config.Name {
			continue
		}
		c := &cobra.Command{Use: t.Name, Short: t.Short}
		c.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), t.Text()) })
		list = append(list, c)
	}
	return list
}

// newHelp returns the command "help", which explains a word: a topic or part of one, a command, a configuration key or an API name.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC | KEY | LUA NAME | WORDS]",
		Short: "explain a command, a topic, a key of configurations, or a name of the Lua API; find other words",
		Long: `help explains a command, a topic, a key of configurations or a name of the Lua API. Other words are searched in the cookbook, the other
documents, the keys, the names of the API and the commands; the three best answers are shown, each with the command that prints it:
  daqiri-run help q:alloc
  daqiri-run help count lost packets`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return root.Help()
			}
			text := topicText(args[0])
			if c, rest, err := root.Find(args); text == "" && err == nil && len(rest) == 0 && c != root {
				return c.Help()
			}
			if text = cmp.Or(text, nameText(args[0])); text != "" && len(args) == 1 {
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return exit.Fail(exit.Storage, err)
			}
			if text = searchText(root, strings.Join(args, " ")); text != "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return exit.Fail(exit.Storage, err)
			}
			hint := ""
			if near := suggest.Nearest(args[0], helpWords(root)); near != "" {
				hint = fmt.Sprintf(" (did you mean '%s'?)", near)
			}
			return exit.Fail(exit.Usage, fmt.Errorf("%s: neither a command, a topic, a key of configurations nor a name of the Lua API, and no document has it%s",
				strings.Join(args, " "), hint))
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return helpWords(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// topicText returns a topic or the requested part of one, or "".
func topicText(word string) string {
	if i := slices.IndexFunc(topics, func(t manual.Topic) bool { return t.Name == word || t.File == word }); i >= 0 {
		return topics[i].Text()
	}
	if topic, ok := parts[word]; ok {
		part, _ := topic.Part(word)
		return part.Text()
	}
	return ""
}

// nameText returns the description of a configuration key or an API name, or "".
func nameText(word string) string {
	var texts []string
	if slices.Contains(manual.ConfigKeys(), word) {
		texts = append(texts, manual.ConfigKey(word).Text())
	}
	if text := manual.LuaHelp(word); text != "" {
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// searchText returns the best answers to a question from the documents, the keys, the API and, if root is given, the commands; "" if there is none.
func searchText(root *cobra.Command, asked string) string {
	entries := manual.Entries()
	if root != nil {
		for _, c := range root.Commands() {
			if c.Hidden || c.Long == "" {
				continue
			}
			e := manual.Entry{Read: c.CommandPath() + " --help", Title: c.Name() + ": " + c.Short, Text: manual.Sentences(c.Long)}
			c.Flags().VisitAll(func(f *pflag.Flag) { e.Text = append(e.Text, "--"+f.Name+": "+f.Usage) })
			entries = append(entries, e)
		}
	}
	return manual.Results(asked, manual.Search(asked, entries))
}

// helpWords lists the words that help explains.
func helpWords(root *cobra.Command) []string {
	words := commandNames(root)
	for part := range parts {
		words = append(words, part)
	}
	words = append(words, manual.ConfigKeys()...)
	words = append(words, manual.LuaNames()...)
	slices.Sort(words)
	return slices.Compact(words)
}
