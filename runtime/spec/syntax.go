package spec

import (
	"bytes"
	"regexp"
	"strconv"

	"gopkg.in/yaml.v3"
)

// yamlPrefix matches the start of yaml.v3's error messages.
var yamlPrefix = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntaxText(err error, text []byte, line int) string {
	what := yamlPrefix.ReplaceAllString(err.Error(), "")
	lines := bytes.Split(text, []byte("\n"))
	if line <= len(lines) {
		indent := lines[line-1][:len(lines[line-1])-len(bytes.TrimLeft(lines[line-1], " \t"))]
		if bytes.IndexByte(indent, '\t') >= 0 {
			return "a tab in the indentation: YAML wants spaces"
		}
	}
	return "not YAML: " + what
}

// locate finds the first syntax error: the line after the longest prefix that parses. (yaml.v3 reports the line of the enclosing block, which is used
// for texts that are too large for the search.)
func locate(text []byte, err error) (line, column int) {
	if len(text) > 256<<10 {
		n, _ := strconv.Atoi(yamlPrefix.FindStringSubmatch(err.Error())[1])
		return max(n, 1), 1
	}
	ends := []int{0}
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(text))
	good, bad := 0, len(ends)-1
	for bad-good > 1 {
		mid := (good + bad) / 2
		// A prefix may also fail because it ends inside a quoted text or a bracket: the following lines decide.
		probe := mid
		for probe < min(mid+20, bad) && !parses(text[:ends[probe]]) {
			probe++
		}
		if probe < min(mid+20, bad) {
			good = probe
		} else {
			bad = mid
		}
	}
	at := text[ends[good]:]
	return good + 1, 1 + len(at) - len(bytes.TrimLeft(at, " "))
}

func parses(text []byte) bool {
	var n yaml.Node
	return yaml.Unmarshal(text, &n) == nil
}
