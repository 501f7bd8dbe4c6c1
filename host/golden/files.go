package golden

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// compareFiles compares the files listed in NAME.files with those in NAME.files.d.
func compareFiles(c testCase, want expectation, box sandbox) []problem {
	var problems []problem
	for _, name := range want.files {
		golden, err := os.ReadFile(filepath.Join(c.base+".files.d", name))
		if err != nil {
			problems = append(problems, problem{title: "golden file " + err.Error()})
			continue
		}
		got, err := os.ReadFile(filepath.Join(box.work, name))
		if os.IsNotExist(err) {
			problems = append(problems, problem{title: "did not write " + name})
			continue
		}
		if err != nil {
			problems = append(problems, problem{title: err.Error()})
			continue
		}
		if body := compareFile(name, golden, got); body != "" {
			problems = append(problems, problem{name + " differs", body})
		}
	}
	return problems
}

// compareFile returns "" for equal files: captures are compared packet by packet, other files byte by byte.
func compareFile(name string, want, got []byte) string {
	switch {
	case bytes.Equal(want, got):
		return ""
	case isPcap(want) && isPcap(got):
		return comparePcap(name, want, got)
	case isText(want) && isText(got):
		return unified(name+" (golden)", name, splitAfter(string(want)), splitAfter(string(got)))
	}
	return fmt.Sprintf("%s: %d bytes, want %d\n%s", name, len(got), len(want), hexDifference(want, got))
}

func isText(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// hexDifference shows the sixteen bytes around the first difference and marks the differing bytes.
func hexDifference(want, got []byte) string {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	row := at &^ 15
	var marks strings.Builder
	for i := row; i < row+16 && (i < len(want) || i < len(got)); i++ {
		mark := "   "
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			mark = "^^ "
		}
		marks.WriteString(mark)
	}
	return fmt.Sprintf("  first difference at offset %d (0x%x)\n  want %06x  %s\n  got  %06x  %s\n               %s\n",
		at, at, row, hexRow(want, row), row, hexRow(got, row), strings.TrimRight(marks.String(), " "))
}

func hexRow(data []byte, from int) string {
	if from >= len(data) {
		return "(ends here)"
	}
	end := min(from+16, len(data))
	pairs := make([]string, 0, 16)
	for _, b := range data[from:end] {
		pairs = append(pairs, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(pairs, " ")
}
