package repl

import "strings"

// oneLine converts a chunk to a single line for the line editor: newlines become spaces, comments are removed, long strings become quoted ones.
// ok is false if that is not possible.
func oneLine(text string) (line string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch level := longBracket(strings.TrimPrefix(rest, "--")); {
		case strings.HasPrefix(rest, "--") && level >= 0:
			i += 2 + len(longText(rest[2:], level))
			b.WriteByte(' ')
		case strings.HasPrefix(rest, "--"):
			i += len(rest) - len(strings.TrimLeft(rest, "-")) // two or more dashes
			if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(text)
			}
		case rest[0] == '[' && level >= 0:
			whole := longText(rest, level)
			if !strings.Contains(whole, "\n") {
				b.WriteString(whole)
			} else if len(whole) >= 2*(level+2) {
				b.WriteString(quote(strings.TrimPrefix(whole[level+2:len(whole)-level-2], "\n")))
			}
			i += len(whole)
		case rest[0] == '"' || rest[0] == '\'':
			whole := shortText(rest)
			if strings.Contains(whole, "\n") {
				return "", false
			}
			b.WriteString(whole)
			i += len(whole)
		case rest[0] == '\n':
			b.WriteByte(' ')
			i++
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	line = strings.TrimSpace(b.String())
	return line, parseError(line) == nil || parseError("return "+line) == nil
}

// longBracket returns the level of the long bracket at the start of text, or -1: [[ is 0, [=[ is 1.
func longBracket(text string) int {
	if !strings.HasPrefix(text, "[") {
		return -1
	}
	rest := strings.TrimLeft(text[1:], "=")
	if !strings.HasPrefix(rest, "[") {
		return -1
	}
	return len(text) - 1 - len(rest)
}

// longText returns the long string or comment at the start of text, with its brackets.
func longText(text string, level int) string {
	end := "]" + strings.Repeat("=", level) + "]"
	if i := strings.Index(text[level+2:], end); i >= 0 {
		return text[:level+2+i+len(end)]
	}
	return text
}

// shortText returns the quoted string at the start of text.
func shortText(text string) string {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return text[:i+1]
		}
	}
	return text
}
