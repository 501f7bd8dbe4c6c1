package kernel

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// included finds the headers of rings (native/gpunetio/device) in a source.
var included = regexp.MustCompile(`(?m)^\s*#\s*include\s*["<](gn|doca_gpu)\.h[">]`)

// headersOf are the texts of the headers that a source may include, by name; none where it includes none of ours.
func headersOf(text string) map[string]string {
	if !included.MatchString(text) {
		return map[string]string{}
	}
	return native.KernelHeaders()
}

// joined is all of them, for the hash of what a kernel is made from.
func joined(headers map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		b.WriteString(name + "\n" + headers[name])
	}
	return b.String()
}

// writeHeaders puts them where a compiler that works in dir finds them.
func writeHeaders(dir string, headers map[string]string) error {
	for name, text := range headers {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
