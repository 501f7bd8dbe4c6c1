package cli

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/docs"
	"github.com/daqiri/daqiri-run/host/exit"
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
key, name or flag.`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return pageNames(), cobra.ShellCompDirectiveNoFileComp
			case 1:
				return headings(page(args[0])), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := document(args)
			if err == nil {
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
	if part := chapter(text, args[1]); part != "" {
		return part, nil
	}
	return "", missing(args[1], "heading of "+args[0], headings(text))
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

// isHeading returns level and title of a Markdown heading; level is 0 for other lines. code is set inside a code block, where there are no
// headings.
func isHeading(line string, code bool) (level int, title string) {
	marks, title, ok := strings.Cut(line, " ")
	if code || !ok || marks == "" || strings.Trim(marks, "#") != "" {
		return 0, ""
	}
	return len(marks), strings.Trim(strings.TrimSpace(title), "`")
}

// headings lists a document's headings below its title.
func headings(text string) (all []string) {
	code := false
	for line := range strings.Lines(text) {
		code = code != strings.HasPrefix(line, "```")
		if level, title := isHeading(line, code); level > 1 {
			all = append(all, title)
		}
	}
	return all
}

// chapter returns the part of a document under a heading, given by its name or the beginning of it; "" if there is none.
func chapter(text, asked string) string {
	lines := slices.Collect(strings.Lines(text))
	for _, whole := range []bool{true, false} {
		first, depth, code := -1, 0, false
		for i, line := range lines {
			code = code != strings.HasPrefix(line, "```")
			level, title := isHeading(line, code)
			same := strings.EqualFold(title, asked) || !whole && strings.HasPrefix(strings.ToLower(title), strings.ToLower(asked))
			switch {
			case level == 0:
			case first < 0 && level > 1 && same:
				first, depth = i, level
			case first >= 0 && level <= depth:
				return strings.Join(lines[first:i], "")
			}
		}
		if first >= 0 {
			return strings.Join(lines[first:], "")
		}
	}
	return ""
}
