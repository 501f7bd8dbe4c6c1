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

// included matches includes of the ring headers (native/gpunetio/device) in a source.
var included = regexp.MustCompile(`(?m)^\s*#\s*include\s*["<](gn|doca_gpu)\.h[">]`)

// headersOf returns the texts of the headers available to a source, by name; none if it includes no ring header.
func headersOf(text string) map[string]string {
	if !included.MatchString(text) {
		return map[string]string{}
	}
	return native.KernelHeaders()
}

// joined returns the concatenation of all headers, for the cache key.
func joined(headers map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		b.WriteString(name + "\n" + headers[name])
	}
	return b.String()
}

// writeHeaders writes the headers into dir, the compiler's working folder.
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
