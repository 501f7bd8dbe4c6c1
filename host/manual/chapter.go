package manual

import (
	"slices"
	"strings"
)

// A Chapter is a part of a document: its title page, or what stands below one heading.
type Chapter struct {
	Heading string // "" for the part before the first heading
	Text    string // Markdown, with the heading
}

// isHeading returns level and title of a Markdown heading, without the marks of code; level is 0 for other lines. code is set inside a code block, where there are no
// headings.
func isHeading(line string, code bool) (level int, title string) {
	marks, title, ok := strings.Cut(line, " ")
	if code || !ok || marks == "" || strings.Trim(marks, "#") != "" {
		return 0, ""
	}
	return len(marks), strings.ReplaceAll(strings.TrimSpace(title), "`", "")
}

// Chapters splits a document at its headings.
func Chapters(text string) []Chapter {
	all, code := []Chapter{{}}, false
	for line := range strings.Lines(text) {
		code = code != strings.HasPrefix(line, "```")
		if level, title := isHeading(line, code); level > 1 {
			all = append(all, Chapter{Heading: title})
		}
		all[len(all)-1].Text += line
	}
	return all
}

// Headings lists a document's headings below its title.
func Headings(text string) (all []string) {
	for _, c := range Chapters(text)[1:] {
		all = append(all, c.Heading)
	}
	return all
}

// FindChapter returns the part of a document under a heading, given by its name or the beginning of it, with the chapters within; "" if there is
// none.
func FindChapter(text, asked string) string {
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
