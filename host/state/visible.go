package state

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// longestText is how many bytes of a file are read into memory at most: of scripts, formats, summaries and manifests.
const longestText = 256 << 20

// ReadText reads a file or pipe whole. A longer one than 256 MiB, as a device without an end is, is an error.
func ReadText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longestText+1))
	if err == nil && len(data) > longestText {
		err = fmt.Errorf("%s: it is longer than %d MiB", path, longestText>>20)
	}
	return data, err
}

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
