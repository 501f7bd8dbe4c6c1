package state

import (
	"strconv"
	"strings"
	"unicode"
)

// Visible is text from outside as it may be printed to a terminal: control characters and what is no UTF-8 are escaped as Go escapes them in
// strings, and all else stays.
func Visible(text string) string {
	for _, r := range text {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			quoted := strconv.Quote(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}

// VisibleLines is Visible of a text of several lines, which may have tabs.
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
