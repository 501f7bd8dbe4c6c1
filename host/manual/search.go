package manual

import (
	"cmp"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/docs"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// An Entry is an item that a search can find: a chapter of a document, a name of the Lua API, a key of configurations or a command.
type Entry struct {
	Read  string   // command line that prints it
	Title string   // its words count more than those of Text
	Text  []string // sentences and lines; one is shown with a result
	worth float64  // factor of its score; 0 is 1
}

// best is the number of results of a search.
const best = 3

// titleWeight is how many occurrences in the text one in the title counts as.
const titleWeight = 4

// sameMeaning lists groups of words that a search accepts for each other, with a lower score than the word itself.
var sameMeaning = [][]string{
	{"lose", "lost", "loss", "missing", "drop", "gap"}, {"record", "save", "store", "write", "capture"}, {"send", "transmit", "tx", "generate"},
	{"receive", "rx"}, {"rate", "speed", "pace", "bandwidth", "throughput"}, {"print", "show", "display"}, {"gpu", "cuda"}, {"error", "fail"},
	{"time", "timestamp", "clock"}, {"nic", "interface", "card", "device"}, {"thread", "core", "cpu"}, {"select", "filter", "match"}, {"file", "disk"},
	{"number", "counter", "sequence"}, {"end", "stop"}, {"modify", "change", "rewrite"}, {"port", "listen"}, {"stat", "statistic", "figure", "metric"},
}

var (
	tokens = regexp.MustCompile(`[a-z0-9_]+`)
	ending = regexp.MustCompile(`(?:ies|ing|ed|es|s|e|y)$`)
	// idle are words that questions have and that say nothing about what is searched.
	idle = strings.Fields("a an and are as at be by can do does for from get how i if in into is it me my of on or so that the their then this to want what when where which who why with")
)

// stem reduces a word to the part that its forms share: losses and loss, dropped and drop.
func stem(word string) string {
	short := word
	for len(short) > 3 {
		next := ending.ReplaceAllString(short, "")
		if next == short || len(next) < 3 {
			break
		}
		short = next
	}
	if n := len(short); n > 3 && short[n-1] == short[n-2] {
		return short[:n-1]
	}
	return short
}

// terms returns the stems of a text's words; a name such as num_bufs counts as a whole and in parts.
func terms(text string) (all []string) {
	for _, word := range tokens.FindAllString(strings.ToLower(text), -1) {
		if slices.Contains(idle, word) {
			continue
		}
		all = append(all, stem(word))
		if parts := strings.Split(word, "_"); len(parts) > 1 {
			for _, part := range parts {
				if part != "" && !slices.Contains(idle, part) {
					all = append(all, stem(part))
				}
			}
		}
	}
	return all
}

// alike maps a stem to those of the words that it is accepted for.
var alike = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, group := range sameMeaning {
		for _, a := range group {
			for _, b := range group {
				if a != b {
					all[stem(a)] = append(all[stem(a)], stem(b))
				}
			}
		}
	}
	return all
})

// Entries returns what the program describes: the chapters of its documents, the names of the Lua API and the keys of configurations.
func Entries() (all []Entry) {
	files, _ := fs.Glob(docs.Files, "*.md") // the pattern is valid
	for _, file := range files {
		if file == Config.Document() {
			continue // its keys are entries of their own
		}
		text, _ := fs.ReadFile(docs.Files, file) // an embedded file
		all = append(all, documentEntries(strings.TrimSuffix(file, ".md"), string(text))...)
	}
	for _, s := range bindings.Reference() {
		for _, n := range s.Names {
			name := s.Prefix(&n) + n.Name
			e := Entry{Read: "daqiri-run help " + name, Title: name, Text: Sentences(n.Words)}
			for _, v := range slices.Concat(n.Args, n.Options, n.Results) {
				if v.Name != "" {
					e.Text = append(e.Text, v.Name+": "+plain(meaning(&v)))
				}
			}
			all = append(all, e)
		}
	}
	return append(all, keyEntries()...)
}

// documentEntries returns the chapters of a document. A recipe of the cookbook counts more, as it can be run; records of decisions and measurements
// count less.
func documentEntries(name, text string) (all []Entry) {
	worth := map[string]float64{"cookbook": 1.5, "decisions": 0.5, "measurements": 0.5, "glossary": 0.7}[name]
	title := name
	for _, c := range Chapters(text) {
		e := Entry{Read: "daqiri-run doc " + name, Title: title, worth: worth}
		if c.Heading != "" {
			e.Read += " '" + strings.ReplaceAll(c.Heading, "'", `'\''`) + "'"
			e.Title = name + ": " + c.Heading
		}
		paragraph, code := "", false
		for line := range strings.Lines(c.Text) {
			fence := strings.HasPrefix(line, "```")
			code = code != fence
			switch line = strings.TrimSpace(line); {
			case code || fence || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "*Made from"):
			case strings.HasPrefix(line, "|"):
				e.Text = append(e.Text, strings.TrimSpace(strings.ReplaceAll(strings.Trim(plain(line), "| "), " | ", "  ")))
			case line != "" && !strings.HasPrefix(line, "- "):
				paragraph += " " + line
				continue
			}
			e.Text = append(e.Text, Sentences(paragraph)...)
			if paragraph = ""; strings.HasPrefix(line, "- ") && !code {
				paragraph = line[2:]
			}
		}
		e.Text = append(e.Text, Sentences(paragraph)...)
		all = append(all, e)
	}
	return all
}

// keyEntries returns the keys of configurations, one entry a key.
func keyEntries() (all []Entry) {
	for _, name := range ConfigKeys() {
		e := Entry{Read: "daqiri-run help " + name, Title: name}
		for _, p := range schema.Places() {
			for _, k := range p.Rows() {
				if k.Name == name {
					e.Text = append(e.Text, p.Name+"."+name+": "+plain(k.Does()))
				}
			}
		}
		all = append(all, e)
	}
	return all
}

var sentenceEnd = regexp.MustCompile(`[.:]\s+`)

// Sentences splits plain words at the ends of sentences.
func Sentences(words string) (all []string) {
	words = strings.ReplaceAll(strings.Join(strings.Fields(plain(words)), " "), "**", "")
	for words != "" {
		at := sentenceEnd.FindStringIndex(words)
		if at == nil {
			return append(all, words)
		}
		all, words = append(all, words[:at[0]+1]), words[at[1]:]
	}
	return all
}

// scored is an entry with its counted terms.
type scored struct {
	Entry
	count  map[string]float64
	length float64
	score  float64
}

// Search returns the entries that answer a question best, up to three, best first; none if no entry has a word of it. It ranks by BM25: a word
// counts by how few entries have it, and entries that have more of the words come first.
func Search(asked string, entries []Entry) (found []Entry) {
	have, all, total := map[string]float64{}, make([]scored, len(entries)), 0.0
	for i, e := range entries {
		all[i] = scored{Entry: e, count: map[string]float64{}}
		for _, t := range terms(e.Title) {
			all[i].count[t] += titleWeight
		}
		for _, line := range e.Text {
			for _, t := range terms(line) {
				all[i].count[t]++
				all[i].length++
			}
		}
		total += all[i].length
		for t := range all[i].count {
			have[t]++
		}
	}
	question := terms(asked)
	slices.Sort(question)
	question = slices.Compact(question)
	for i := range all {
		all[i].rank(question, have, float64(len(entries)), total/float64(len(entries)))
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, e := range all[:min(best, len(all))] {
		if e.score > 0 && e.score > all[0].score/4 {
			found = append(found, e.Entry)
		}
	}
	return found
}

// rank sets the score of an entry for a question; have counts the entries with a term, of which there are n with a mean length.
func (e *scored) rank(question []string, have map[string]float64, n, mean float64) {
	matched := 0.0
	for _, t := range question {
		most, part := e.term(t, have[t], n, mean), 1.0
		for _, other := range alike()[t] {
			if s := 0.6 * e.term(other, have[other], n, mean); s > most {
				most, part = s, 0.8
			}
		}
		if most > 0 {
			e.score += most
			matched += part
		}
	}
	share := matched / float64(len(question))
	e.score *= share * share * cmp.Or(e.worth, 1)
}

// term returns what one term adds to the score.
func (e *scored) term(t string, have, n, mean float64) float64 {
	const saturation, byLength = 1.2, 0.5
	tf := e.count[t]
	if tf == 0 {
		return 0
	}
	return math.Log(1+(n-have+0.5)/(have+0.5)) * tf * (saturation + 1) / (tf + saturation*(1-byLength+byLength*e.length/mean))
}

// Results formats the results of a search for a terminal: the command that prints each, and the sentence of it that has most words of the question.
func Results(asked string, found []Entry) string {
	var b strings.Builder
	question := terms(asked)
	for i, e := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(e.Read + "\n")
		if line := e.sentence(question); line != "" {
			b.WriteString("  " + fold(line, width-2, "  ") + "\n")
		}
	}
	return b.String()
}

// sentence returns the sentence that has most terms of a question, the first of several.
func (e *Entry) sentence(question []string) (line string) {
	most := -1
	for _, s := range e.Text {
		n, have := 0, terms(s)
		for _, t := range question {
			if slices.Contains(have, t) || slices.ContainsFunc(alike()[t], func(o string) bool { return slices.Contains(have, o) }) {
				n++
			}
		}
		if n > most {
			line, most = s, n
		}
	}
	return line
}
