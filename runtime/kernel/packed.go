package kernel

import (
	"regexp"
	"strings"
)

var (
	packedBehind = regexp.MustCompile(`\}\s*(__attribute__\s*\(\(\s*(?:__packed__|packed)\s*\)\))`)
	structAhead  = regexp.MustCompile(`\b(?:struct|union|class)\b([^{};()]*)$`)
)

// packedAhead returns the text with each `packed` behind the members of a structure moved in front of its name. NVRTC ignores the attribute behind the
// members, which compilers for the host accept, so that the structure would have another layout on a GPU. Lines keep their numbers.
func packedAhead(text string) string {
	plain := blank(text)
	ahead, behind := map[int]bool{}, map[int]int{} // positions, and ends of what stands behind
	for _, at := range packedBehind.FindAllStringSubmatchIndex(plain, -1) {
		open := opening(plain, at[0])
		if name := structAhead.FindStringSubmatchIndex(plain[:open]); name != nil {
			ahead[name[2]], behind[at[2]] = true, at[3]
		}
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if ahead[i] {
			b.WriteString(" __attribute__((packed))")
		}
		if end := behind[i]; end > 0 {
			b.WriteString(strings.Repeat("\n", strings.Count(plain[i:end], "\n")))
			i = end - 1
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// opening returns the position of the brace that the one at i closes, or 0.
func opening(text string, i int) int {
	depth := 0
	for ; i > 0; i-- {
		switch text[i] {
		case '}':
			depth++
		case '{':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}
