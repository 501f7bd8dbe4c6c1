package structure

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

func TestFormatGo(t *testing.T) {
	for _, name := range tree.Files(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		text := tree.Read(t, name)
		formatted, err := format.Source([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if string(formatted) != text {
			t.Errorf("%s is not gofmt's (hint: make fmt)", name)
		}
	}
}

// clangFormat is the major version whose output .clang-format was written for; others lay some lines out differently.
const clangFormat = "14"

func TestFormatC(t *testing.T) {
	command, err := require.Tool("clang-format")
	if err != nil {
		require.Lack(t, "clang-format", err.Error())
	}
	version, err := exec.Command(command, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(version), " version "+clangFormat+".") {
		require.Lack(t, "clang-format", fmt.Sprintf("%s formats differently from version %s", bytes.TrimSpace(version), clangFormat))
	}
	args := []string{"--dry-run", "-Werror"}
	for _, name := range tree.Files(t) {
		if ext := path.Ext(name); ext == ".c" || ext == ".h" {
			args = append(args, filepath.Join(tree.Root, name))
		}
	}
	if len(args) == 2 {
		t.Skip("no C file")
	}
	out, err := exec.Command(command, args...).CombinedOutput()
	if err == nil {
		return
	}
	t.Errorf("clang-format: %v (hint: make fmt)", err)
	seen := map[string]bool{}
	for _, m := range formatError.FindAllStringSubmatch(string(out), -1) {
		if file := strings.TrimPrefix(m[1], tree.Root+"/"); !seen[file] {
			seen[file] = true
			t.Errorf("%s: not clang-format's, first in line %s", file, m[2])
		}
	}
}

// formatError finds the file and the line in what clang-format reports.
var formatError = regexp.MustCompile(`(?m)^(\S+):(\d+):\d+: error:`)

func TestFormatText(t *testing.T) {
	for _, name := range tree.Files(t) {
		info, err := os.Lstat(filepath.Join(tree.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().IsRegular() {
			showFaults(t, textFaults(name, tree.Read(t, name)))
		}
	}
}

// verbatim holds what other programs wrote or will read byte for byte, where any byte may be meant.
var verbatim = regexp.MustCompile(`(^|/)(testdata|golden)/|\.(golden|txtar)$`)

// textFaults are the rules for text that one file breaks.
func textFaults(name, text string) []string {
	if strings.Contains(text, "\x00") || verbatim.MatchString(name) {
		return nil
	}
	var faults []string
	for i, line := range strings.Split(text, "\n") {
		fault := func(why string) { faults = append(faults, fmt.Sprintf("%s:%d: %s", name, i+1, why)) }
		if strings.HasSuffix(line, "\r") {
			fault("CRLF line end")
		} else if strings.TrimRight(line, " \t") != line {
			fault("trailing white space")
		}
		if path.Ext(name) == ".lua" && strings.Contains(line, "\t") {
			fault("tab in a Lua file")
		}
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		faults = append(faults, name+": no newline at the end")
	}
	return faults
}

var (
	codeSpan     = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	markdownLink = regexp.MustCompile(`\]\(<?([^)>\s#]+)[^)]*\)`)
	otherPlace   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

func TestMarkdownLinks(t *testing.T) {
	for _, name := range tree.Files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, target := range localLinks(name, tree.Read(t, name)) {
			if _, err := os.Stat(filepath.Join(tree.Root, target)); err != nil {
				t.Errorf("%s: link to %s, which is not there", name, target)
			}
		}
	}
}

// localLinks are the files, relative to the root, that a Markdown text links to.
func localLinks(name, text string) []string {
	var targets []string
	for _, m := range markdownLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
		if !otherPlace.MatchString(m[1]) {
			targets = append(targets, path.Join(path.Dir(name), m[1]))
		}
	}
	return targets
}

// doubledLen is how many characters of a document's text may not stand in it twice.
const doubledLen = 60

// notText is what of a document is not a running text: code, tables, targets of links.
var notText = regexp.MustCompile("(?ms)^```.*?^```|^\\|[^\n]*|\\]\\([^)]*\\)")

// TestFormatDoubled: no document contains the same twice, as an edit that went wrong does. Pages of the API and of formats are made, and say the same of what
// does the same.
func TestFormatDoubled(t *testing.T) {
	for _, name := range tree.Files(t) {
		if path.Ext(name) == ".md" && path.Dir(name) != "docs/api" && name != "docs/formats.md" {
			showFaults(t, doubledFaults(name, tree.Read(t, name)))
		}
	}
}

// doubledFaults are the texts that begin a second time.
func doubledFaults(name, text string) []string {
	words := strings.Fields(notText.ReplaceAllString(text, ""))
	joined := strings.Join(words, " ")
	seen, at := map[string]bool{}, 0
	for _, w := range words {
		if at+doubledLen <= len(joined) {
			piece := joined[at : at+doubledLen]
			if seen[piece] {
				return []string{fmt.Sprintf("%s: stands there twice: %q", name, piece)}
			}
			seen[piece] = true
		}
		at += len(w) + 1
	}
	return nil
}

// TestFormatRules feeds each rule something bad, so that the tests above can fail.
func TestFormatRules(t *testing.T) {
	texts := []struct{ name, file, text, want string }{
		{"clean", "a.lua", "x = 1\n", ""},
		{"trailing space", "a.md", "one\ntwo \n", "a.md:2: trailing white space"},
		{"CRLF", "a.md", "one\r\n", "a.md:1: CRLF"},
		{"tab in Lua", "a.lua", "\tx = 1\n", "a.lua:1: tab"},
		{"tab in Go", "a.go", "\tx := 1\n", ""},
		{"no last newline", "a.c", "int x;", "no newline at the end"},
		{"binary", "a.pcap", "\x00 \n \r\n", ""},
		{"golden", "tests/golden/a.out", "one \n", ""},
	}
	for _, c := range texts {
		t.Run(c.name, func(t *testing.T) { wantFault(t, textFaults(c.file, c.text), c.want) })
	}
	const once = "One sentence that is long enough to differ from others by its words alone. "
	for text, want := range map[string]string{once: "", once + "Another. " + strings.ReplaceAll(once, " to be", "\n  to be"): "stands there twice",
		once + "\n```\n" + once + "\n```\n": "", once + "\n| " + once + "|\n": ""} {
		wantFault(t, doubledFaults("a.md", text), want)
	}
	markdown := "[a](b.md) [c](../d.md#part) [web](https://example.org/x) `[code](no.md)`\n```\n[code](no.md)\n```\n[p](#part)\n"
	got := strings.Join(localLinks("host/README.md", markdown), " ")
	if want := "host/b.md d.md"; got != want {
		t.Errorf("links: got %q, want %q", got, want)
	}
}
