package kernel

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel/doca"
)

var (
	// included matches includes of the ring headers (native/gpunetio/device) and of those with DOCA's names (runtime/kernel/doca).
	included  = regexp.MustCompile(`(?m)^\s*#\s*include\s*["<](?:gn\.h|gpunetio/device/\w+\.h|doca_\w+\.(?:h|cuh))[">]`)
	docaNamed = regexp.MustCompile(`(?m)^\s*#\s*include\s*["<]doca_\w+\.(?:h|cuh)[">]`)
	quoted    = regexp.MustCompile(`(?m)^(\s*#\s*include\s*")((?:\.\./)?)([\w./-]+\.(?:h|hpp|cuh))"`)
)

// headers returns the texts of the headers available to the source, by name: none unless it includes a ring header, and its own.
func (s *Source) headers() map[string]string {
	headers := map[string]string{}
	if s.names(included) {
		headers = native.KernelHeaders()
	}
	if s.names(docaNamed) {
		doca.AddHeaders(headers)
	}
	maps.Copy(headers, s.Own)
	return headers
}

// anywhere reports whether a pattern matches in the source or in one of its own headers.
func (s *Source) anywhere(pattern *regexp.Regexp, text func(string) string) bool {
	for _, header := range s.Own {
		if pattern.MatchString(text(header)) {
			return true
		}
	}
	return pattern.MatchString(text(s.Text))
}

// names reports whether the source or one of its own headers has such an include.
func (s *Source) names(include *regexp.Regexp) bool { return s.anywhere(include, strings.Clone) }

// hostHeaders returns them as the host's compiler gets them.
func (s *Source) hostHeaders() map[string]string {
	headers := s.headers()
	for name := range s.Own {
		headers[name] = forHost(headers[name])
	}
	return headers
}

// FindHeaders reads the source's own headers, which it includes with quotes: those found in one of the folders. A name "../x.h" becomes "x.h".
func (s *Source) FindHeaders(folders []string) {
	s.Own = map[string]string{}
	s.Text = s.own(s.Text, folders)
}

// own returns the text with its includes renamed, after it has read those found.
func (s *Source) own(text string, folders []string) string {
	return quoted.ReplaceAllStringFunc(text, func(line string) string {
		m := quoted.FindStringSubmatch(line)
		name := m[3]
		if strings.Contains(name, "..") || filepath.IsAbs(name) {
			return line
		}
		if _, read := s.Own[name]; !read {
			i := slices.IndexFunc(folders, func(dir string) bool { return isFile(filepath.Join(dir, name)) })
			if i < 0 {
				return line
			}
			header, err := os.ReadFile(filepath.Join(folders[i], name))
			if err != nil {
				return line
			}
			s.Own[name] = "" // a header that includes itself
			s.Own[name] = s.own(string(header), folders)
		}
		return m[1] + name + `"`
	})
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
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

var (
	directive   = regexp.MustCompile(`(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$`)
	globaltimer = regexp.MustCompile(`\basm\s+volatile\s*\(\s*"mov\.u64\s+%0,\s*%+globaltimer;"\s*:\s*"=l"\s*\(\s*(\w+)\s*\)\s*\)`)
)

// withoutLaunches returns the text with functions that launch kernels (<<<...>>>) replaced by spaces: the host's part of a source.
func withoutLaunches(text string) string {
	if !strings.Contains(text, "<<<") {
		return text
	}
	plain := []byte(directive.ReplaceAllStringFunc(blank(text), func(line string) string { return strings.Repeat(";", len(line)) }))
	out := []byte(text)
	for from, i := 0, 0; i < len(plain); i++ {
		switch plain[i] {
		case ';', '}':
			from = i + 1
		case '{':
			if head := strings.Fields(string(plain[from:i])); len(head) > 0 && (head[0] == "namespace" || len(head) == 1 && head[0] == "extern") {
				from = i + 1 // a block of declarations
				continue
			}
			end := closing(plain, i)
			if strings.Contains(string(plain[i:end]), "<<<") {
				for k := from; k < end; k++ {
					if out[k] != '\n' {
						out[k] = ' '
					}
				}
			}
			i, from = end-1, end
		}
	}
	return string(out)
}

// closing returns the position behind the brace that closes the one at i.
func closing(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// forHost returns a text with the GPU's timer, which is read in assembly, replaced by the host's.
func forHost(text string) string { return globaltimer.ReplaceAllString(text, "($1 = dq_now())") }
