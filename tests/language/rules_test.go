package language

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

type sentence struct {
	rule, bad string
	good      []string
}

// sentences has at least one sentence for each rule that breaks it, and ones like it that do not break any.
var sentences = []sentence{
	{"Terms", "A takers' list is full", []string{"The region dark is full", "The file native/yardstick/a.c is full", "A taker_of is full"}},
	{"Terms", "Dark memory is full", []string{"Device-only memory is full"}},
	{"Terms", "The packets are held\nback", []string{"The packets are in\nflight"}},
	{"Faults", "The fault is in the configuration", []string{"A page fault stops it", "Fault injection is on", "Each injected fault is counted", "See a.fault(b)"}},
	{"Faults", "It returns the fault.", []string{"It returns the error."}},
	{"Words", "Nobody reads this queue", []string{"No task reads this queue", "It runs as user nobody"}},
	{"Words", "It can be told apart", []string{"It can be distinguished"}},
	{"Words", "It runs for\never", []string{"It runs forever"}},
	{"Speech", "The report says why", []string{"The report contains the reason"}},
	{"Idioms", "The poller looks at the ring", []string{"The poller reads the ring", "The ring goes into the poller"}},
	{"Idioms", "It gives them back", []string{"It returns them"}},
	{"IsNo", "The text is no number", []string{"There is no number", "The queue is no longer open", "It is no faster", "The text is not a number"}},
	{"Sentences", strings.Repeat("word ", 30) + "end.", []string{strings.Repeat("word ", 29) + "end. Another.", strings.Repeat("`a b` ", 15) + "end."}},
}

// formats are the kinds of text: the name of a file, the text around a sentence, and the line of the sentence, or 0 where it is not checked.
var formats = []struct {
	file, before, after string
	line                int
}{
	{"text.md", "# Title\n\n", "\n", 3},
	{"item.md", "# Title\n\n- ", "\n", 3},
	{"code.md", "# Title\n\n```\n", "\n```\n", 0},
	{"docs/ledger.md", "# Title\n\n", "\n", 0},
	{"comment.go", "package a\n\n// ", "\nvar a int\n", 3},
	{"string.go", "package a\n\nvar a = `one or more words: ", "`\n", 3},
	{"comment_test.go", "package a\n\n// ", "\nvar a int\n", 3},
	{"string_test.go", "package a\n\nvar a = `one or more words: ", "`\n", 0},
	{"line.c", "int a;\n// ", "\n", 2},
	{"block.h", "int a;\n/* ", " */\n", 2},
	{"string.c", "char *a = \"\";\nchar *b = \"one or more words: ", "\";\n", 2},
	{"macro.h", "int a;\n#define A 1 // ", "\n", 2},
	{"kernels/line.cu", "__global__ void f() {}\n// ", "\n", 2},
	{"line.lua", "local a = 1\n-- ", "\n", 2},
	{"block.lua", "local a = 1\n--[[ ", " ]]\n", 2},
	{"scripts/string.lua", "local a = 1\nlocal b = [[one or more words: ", "]]\n", 2},
	{"line.py", "a = 1\n# ", "\n", 2},
}

// TestLanguageRules feeds each rule bad and good sentences, so that TestLanguage can fail, and each kind of text one bad sentence.
func TestLanguageRules(t *testing.T) {
	vale, dir := valeOf(t), t.TempDir()
	var files []string
	add := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	want := map[string][]string{} // of a file: the rules that it breaks
	lines := map[string]int{}
	for i, s := range sentences {
		name := s.rule + string(rune('a'+i)) + ".md"
		add("bad/"+name, s.bad+"\n")
		add("good/"+name, strings.Join(s.good, "\n\n")+"\n")
		want["bad/"+name] = []string{s.rule}
	}
	for _, f := range formats {
		add(f.file, f.before+"nobody reads this"+f.after)
		if f.line > 0 {
			want[f.file], lines[f.file] = []string{"Words"}, f.line
		}
	}
	found, err := lint(vale, dir, files)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, f := range found {
		got[f.file] = append(got[f.file], f.rule)
		if line := lines[f.file]; line > 0 && f.line != line {
			t.Errorf("%s: found in line %d, stands in line %d", f.file, f.line, line)
		}
	}
	for _, name := range files {
		if !slices.Equal(got[name], want[name]) {
			t.Errorf("%s: broken rules %q, want %q", name, got[name], want[name])
		}
	}
	for _, name := range tree.Files(t) {
		rule := strings.TrimSuffix(path.Base(name), ".yml")
		if path.Dir(name)+"/" == rules && !slices.ContainsFunc(sentences, func(s sentence) bool { return s.rule == rule }) {
			t.Errorf("no sentence breaks %s", name)
		}
	}
}
