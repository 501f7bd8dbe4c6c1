package harness

import (
	"strings"
)

// BlocksOf are the blocks of code of a document in one language.
func BlocksOf(text, language string) (blocks []string) {
	for {
		_, rest, ok := strings.Cut(text, "```"+language+"\n")
		if !ok {
			return blocks
		}
		block, after, _ := strings.Cut(rest, "```")
		blocks, text = append(blocks, block), after
	}
}
