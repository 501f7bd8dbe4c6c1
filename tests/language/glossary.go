// Package language checks the wording of documents, comments and messages with vale (https://vale.sh). Rules are in .vale/styles/daqiri;
// those for terms are generated from docs/glossary.md.
//
// It imports the standard library and helpers of tests.
package language

import (
	"fmt"
	"regexp"
	"strings"
)

// A synonym is a word or a phrase that the glossary forbids.
type synonym struct {
	text   string
	term   string   // used instead
	except []string // phrases in which it is allowed
	rule   string   // hand-written rule that finds it; "": Terms
}

// header is the header row of each table of the glossary.
const header = "| term | meaning | not |"

// synonymForm is one entry of the last column: TEXT, TEXT (except PHRASE, PHRASE) or TEXT (rule NAME).
var synonymForm = regexp.MustCompile(`^([A-Za-z][A-Za-z -]*[A-Za-z])(?: \((except|rule) ([A-Za-z, -]+)\))?$`)

// parseGlossary returns the forbidden synonyms of all tables of a glossary, in their order.
func parseGlossary(text string) ([]synonym, error) {
	var list []synonym
	terms := map[string]bool{}
	inTable := false
	for i, line := range strings.Split(text, "\n") {
		fail := func(why string) error { return fmt.Errorf("docs/glossary.md:%d: %s", i+1, why) }
		if !strings.HasPrefix(line, "|") {
			inTable = false
			continue
		}
		if !inTable {
			if line != header {
				return nil, fail("the table does not begin with " + header)
			}
			inTable = true
			continue
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			return nil, fail("three cells expected")
		}
		term := strings.TrimSpace(cells[0])
		if term == "" || terms[term] {
			return nil, fail("a term of its own expected")
		}
		terms[term] = true
		for _, entry := range splitEntries(cells[2]) {
			m := synonymForm.FindStringSubmatch(entry)
			if m == nil {
				return nil, fail(fmt.Sprintf("%q is not WORDS, WORDS (except PHRASES) or WORDS (rule NAME)", entry))
			}
			s := synonym{text: m[1], term: term}
			switch m[2] {
			case "except":
				for _, phrase := range strings.Split(m[3], ",") {
					s.except = append(s.except, strings.TrimSpace(phrase))
				}
			case "rule":
				s.rule = m[3]
			}
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("docs/glossary.md has no forbidden synonym")
	}
	return list, nil
}

// splitEntries splits a cell at the commas outside parentheses.
func splitEntries(cell string) []string {
	var entries []string
	depth, from := 0, 0
	cell = strings.TrimSpace(cell) + ","
	for i, c := range cell {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if entry := strings.TrimSpace(cell[from:i]); depth == 0 && entry != "" {
				entries = append(entries, entry)
			}
			if depth == 0 {
				from = i + 1
			}
		}
	}
	return entries
}

// termsRule returns the text of the rule Terms: a substitution for each synonym, also in the plural and across a line break, but not in
// paths and names of code.
func termsRule(list []synonym) string {
	var b strings.Builder
	b.WriteString("# Generated from docs/glossary.md: go test ./tests/language -update\nextends: substitution\n" +
		"message: \"Use '%s' instead of '%s' (docs/glossary.md).\"\nlevel: error\nignorecase: true\n")
	var phrases []string
	for _, s := range list {
		phrases = append(phrases, s.except...)
	}
	if len(phrases) > 0 {
		b.WriteString("exceptions:\n")
	}
	for _, p := range phrases {
		fmt.Fprintf(&b, "  - %s\n", p)
	}
	b.WriteString("swap:\n")
	for _, s := range list {
		if s.rule == "" {
			fmt.Fprintf(&b, "  '(?<![./_])%s(?:e?s)?(?![/_\\(]|\\.\\w)': %s\n", strings.ReplaceAll(s.text, " ", `\s+`), s.term)
		}
	}
	return b.String()
}
