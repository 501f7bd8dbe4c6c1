package repl

import (
	"errors"
	"regexp"
	"strings"

	"github.com/yuin/gopher-lua/parse"
)

// chunkBuilder collects lines until they form a chunk.
type chunkBuilder struct {
	name string
	// numbered makes chunks start at their line of the input, so that errors name that line; otherwise chunks start at line 1.
	numbered bool
	lines    []string
	before   int // number of input lines before lines
	last     string
}

// open reports whether a chunk has begun and is incomplete.
func (b *chunkBuilder) open() bool { return len(b.lines) > 0 }

// text returns the last complete chunk as typed.
func (b *chunkBuilder) text() string { return b.last }

func (b *chunkBuilder) prompt() string {
	if len(b.lines) > 0 {
		return promptMore
	}
	return promptFirst
}

// add appends a line and returns the chunk if the line completes it. Blank lines between chunks are ignored.
func (b *chunkBuilder) add(line string) *Chunk {
	b.lines = append(b.lines, line)
	text := strings.Join(b.lines, "\n")
	b.last = text
	if strings.TrimSpace(text) == "" {
		b.reset()
		return nil
	}
	source, unfinished := prepare(text)
	if unfinished {
		return nil
	}
	return b.finish(source)
}

// rest returns the incomplete chunk at the end of the input; compiling it yields the error.
func (b *chunkBuilder) rest() *Chunk {
	if len(b.lines) == 0 {
		return nil
	}
	return b.finish(strings.Join(b.lines, "\n"))
}

func (b *chunkBuilder) finish(source string) *Chunk {
	if b.numbered {
		source = strings.Repeat("\n", b.before) + source
	}
	b.reset()
	return newChunk(b.name, source)
}

// reset discards the collected lines.
func (b *chunkBuilder) reset() {
	b.before += len(b.lines)
	b.lines = nil
}

// prepare converts typed text to source: an expression becomes a return statement, so that its values are returned, and "help WORDS" a call. unfinished reports whether
// more lines could complete the text, as an expression or as statements.
func prepare(text string) (source string, unfinished bool) {
	expression := "return " + text
	asExpression := parseError(expression)
	if asExpression == nil {
		return expression, false
	}
	asStatements := parseError(text)
	if asStatements == nil {
		return text, false
	}
	if words := helpWords.FindStringSubmatch(text); words != nil {
		return "help [==[" + words[1] + "]==]", false
	}
	return text, endsEarly(asStatements, text) || endsEarly(asExpression, text)
}

// helpWords matches a request for help in words without quotes, which is not valid Lua: "help count lost packets", "help q:alloc".
var helpWords = regexp.MustCompile(`^\s*help[ \t]+([A-Za-z][^\n\]]*?)\s*$`)

func parseError(source string) error {
	_, err := parse.Parse(strings.NewReader(source), "")
	return err
}

// endsEarly reports whether a parse error is due to missing input. An unclosed string ends with its line, unless its last character escapes the
// newline.
func endsEarly(err error, text string) bool {
	var syntax *parse.Error
	if !errors.As(err, &syntax) || syntax.Pos.Line != parse.EOF {
		return false
	}
	return syntax.Message != "unterminated string" || strings.HasSuffix(text, `\`)
}
