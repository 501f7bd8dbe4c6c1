package language

import (
	"strings"
	"testing"
)

const table = header + "\n|---|---|---|\n"

func TestParseGlossary(t *testing.T) {
	list, err := parseGlossary("Text.\n\n" + table + "| a | first | |\n| b c | second | dd, ee ff (except gg ee ff, hh), ii (rule Own) |\n\n" + table + "| k | third | ll |\n")
	if err != nil {
		t.Fatal(err)
	}
	text := termsRule(list)
	for _, line := range []string{"  - gg ee ff\n", "  - hh\n", ")dd(?:e?s)?", `)ee\s+ff(?:e?s)?`, ": b c\n", ")ll(?:e?s)?", ": k\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if len(list) != 4 || list[2].rule != "Own" || strings.Contains(text, ")ii(") {
		t.Errorf("%+v\n%s", list, text)
	}
	for text, want := range map[string]string{
		"": "no forbidden synonym", "| a | b |\n": "does not begin with", table + "| a | b |\n": "three cells", table + "| a | b | c d! |\n": "is not WORDS",
		table + "| a | b | |\n| a | c | |\n": "term of its own", table + "| a | b | cc (only d) |\n": "is not WORDS",
	} {
		if _, err := parseGlossary(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseBudget(t *testing.T) {
	allowed, err := parseBudget(budgetHead + "docs Words 2\ndocs Terms 1\nhost Words 3\n")
	if err != nil {
		t.Fatal(err)
	}
	if text := allowed.String(); text != budgetHead+"docs Terms 1\ndocs Words 2\nhost Words 3\n" {
		t.Errorf("sorted:\n%s", text)
	}
	found := count([]finding{{file: "docs/a.md", rule: "Words"}, {file: "docs/b.md", rule: "Words"}, {file: "docs/b.md", rule: "Words"},
		{file: "host/cli/a.go", rule: "Words"}, {file: "docs/a.md", rule: "Terms"}, {file: "README.md", rule: "IsNo"}})
	more, fewer := compare(allowed, found)
	if len(more) != 2 || more[0] != (place{"docs", "Words"}) || more[1] != (place{"root", "IsNo"}) || len(fewer) != 1 || fewer[0] != (place{"host", "Words"}) {
		t.Errorf("more %v, fewer %v", more, fewer)
	}
	for _, text := range []string{"docs Words\n", "docs Words x\n", "docs Words 0\n", "docs Words 1\ndocs Words 1\n"} {
		if _, err := parseBudget(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
