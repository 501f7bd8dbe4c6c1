package state

import (
	"strconv"
	"strings"
	"unicode"
)

// Visible escapes control characters and invalid UTF-8 of untrusted text for a terminal, as in Go string literals; other characters are
// unchanged.
func Visible(text string) string {
	for _, r := range text {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			quoted := strconv.Quote(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}

// VisibleLines is Visible for text with several lines and tabs.
func VisibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for k, cell := range cells {
			cells[k] = Visible(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
