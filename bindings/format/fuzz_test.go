package format

import (
	"regexp"
	"strings"
	"testing"
)

// endless matches Lua keywords that allow unbounded time or memory: such input is skipped, as the reader is not expected to bound it.
var endless = regexp.MustCompile(`\b(while|repeat|for|function|goto)\b|\.\.`)

// FuzzFormat checks that no format file causes a panic, that the dissector of an accepted format is text, and that packets of arbitrary bytes can
// be decoded.
func FuzzFormat(f *testing.F) {
	f.Add(`return { name = "x", { "a", "u8" }, { "b", bits = 12, at = 8 }, { "rest", "bytes" } }`, []byte("0123456789"))
	f.Add(`return { name = "i", { "a", "bytes0", signed = true, const = 105 } }`, []byte{})
	f.Add(`return { name = "c", bits = "lsb", { "n", "u16", endian = "little", const = 0x1234, scale = 0.5, unit = "V" }, { "list", count = "n", { "v", "i24" } } }`, []byte{0x34, 0x12, 1})
	f.Fuzz(func(t *testing.T, source string, packet []byte) {
		if endless.MatchString(source) {
			t.Skip()
		}
		f, err := Load("fuzz.lua", source)
		if err != nil {
			return
		}
		if text := f.Dissector(); !strings.Contains(text, "Proto(") {
			t.Errorf("dissector: %s", text)
		}
		_, _ = f.Decode(packet)
	})
}
