package cli

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/docs"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/manual"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// newDoc returns the command "doc".
func newDoc(g *state.Global) *cobra.Command {
	return &cobra.Command{
		Use:   "doc [PAGE [HEADING]]",
		Short: "print a document, or one chapter of it; without a name the list of them",
		Long: `doc prints the documents (Markdown) that are part of the program: 'daqiri-run doc tour', 'doc writers', 'doc queue'.
With a heading, or the beginning of one, it prints that chapter: 'doc writers rotation'. 'daqiri-run help NAME' explains a single
key, name or flag, and finds words in all documents. On a terminal the text is formatted; elsewhere it is printed as Markdown.`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return pageNames(), cobra.ShellCompDirectiveNoFileComp
			case 1:
				return manual.Headings(page(args[0])), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := document(args)
			if err == nil {
				if g.StdoutTTY {
					columns, _ := terminalSize(g.Stdout)
					text = manual.Terminal(text, cmp.Or(columns, 80), g.ColorStdout())
				}
				_, err = io.WriteString(g.Stdout, text)
				err = exit.Fail(exit.Storage, err)
			}
			return err
		},
	}
}

// document returns a page, a chapter of one, or the list of pages.
func document(args []string) (string, error) {
	if len(args) == 0 {
		return page("README"), nil
	}
	text := page(args[0])
	if text == "" {
		return "", missing(args[0], "document", pageNames())
	}
	if len(args) == 1 {
		return text, nil
	}
	if part := manual.FindChapter(text, args[1]); part != "" {
		return part, nil
	}
	return "", missing(args[1], "heading of "+args[0], manual.Headings(text))
}

func missing(word, what string, known []string) error {
	hint := ""
	if near := suggest.Nearest(word, known); near != "" {
		hint = fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return exit.Fail(exit.Usage, fmt.Errorf("%s: no %s%s; there are %s", word, what, hint, strings.Join(known, ", ")))
}

// page returns the text of a document; API pages are also found without their folder. "" if there is none.
func page(name string) string {
	for _, folder := range []string{"", "api/"} {
		if text, err := fs.ReadFile(docs.Files, folder+strings.TrimSuffix(name, ".md")+".md"); err == nil {
			return string(text)
		}
	}
	return ""
}

// pageNames lists the names of all documents.
func pageNames() (names []string) {
	for _, pattern := range []string{"*.md", "api/*.md"} {
		files, _ := fs.Glob(docs.Files, pattern) // the patterns are valid
		for _, file := range files {
			names = append(names, strings.TrimSuffix(file, ".md"))
		}
	}
	return names
}
