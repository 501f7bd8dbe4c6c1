package repl

import (
	"errors"
	"strings"

	"github.com/yuin/gopher-lua/parse"
)

// chunkBuilder gathers lines until they are a chunk.
type chunkBuilder struct {
	name string
	// numbered puts the chunk at its line of the input, so that errors name that line; otherwise chunks begin at 1.
	numbered bool
	lines    []string
	before   int // lines of the input before lines
	last     string
}

// open says whether a chunk has begun and is not complete.
func (b *chunkBuilder) open() bool { return len(b.lines) > 0 }

// text is the last chunk that was complete, as it was typed.
func (b *chunkBuilder) text() string { return b.last }

func (b *chunkBuilder) prompt() string {
	if len(b.lines) > 0 {
		return promptMore
	}
	return promptFirst
}

// add takes one more line and returns the chunk when that completes it. Blank lines between chunks are none.
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

// rest returns what was left unfinished at the end of the input; compiling it gives the error.
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

// reset forgets the lines gathered so far.
func (b *chunkBuilder) reset() {
	b.before += len(b.lines)
	b.lines = nil
}

// prepare turns what was typed into what to compile: an expression becomes a return statement, so that its values
// come back. It says whether more lines could complete the text, as an expression or as statements.
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
	return text, endsEarly(asStatements, text) || endsEarly(asExpression, text)
}

func parseError(source string) error {
	_, err := parse.Parse(strings.NewReader(source), "")
	return err
}

// endsEarly says whether the parser only lacked more input. A string that is not closed ends with its line, unless
// its last character escapes the newline.
func endsEarly(err error, text string) bool {
	var syntax *parse.Error
	if !errors.As(err, &syntax) || syntax.Pos.Line != parse.EOF {
		return false
	}
	return syntax.Message != "unterminated string" || strings.HasSuffix(text, `\`)
}
