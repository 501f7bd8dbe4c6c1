package kernel

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	splices    = regexp.MustCompile(`\\[ \t\r]*\n`)
	remarks    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
	directives = regexp.MustCompile(`(?m)^[ \t\f\v]*(?:#|%:|\?\?=)[ \t\f\v]*(include|include_next|import|embed)\b[ \t\f\v]*(.*)$`)
	headerName = regexp.MustCompile(`^(?:<([^>]*)>|"([^"]*)")`)
)

// checkIncludes rejects a source that includes a file outside the compiler's header folders. NVRTC reads files within this process, so the text
// itself is checked; compilers for the host are additionally confined (compile.go).
func (s *Source) checkIncludes() error {
	if err := s.checkText(s.Text); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Own)) {
		if err := s.checkText(s.Own[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) checkText(text string) error {
	text = splices.ReplaceAllString(text, "")
	text = remarks.ReplaceAllStringFunc(text, func(part string) string {
		if strings.HasPrefix(part, "/") {
			return " "
		}
		return part
	})
	for _, m := range directives.FindAllStringSubmatch(text, -1) {
		name := headerName.FindStringSubmatch(strings.TrimSpace(m[2]))
		if name == nil || !isHeader(name[1]+name[2]) {
			return s.errorf("its source has #%s %s; hint: a kernel includes headers of the compiler and of daqiri-run (\"gn.h\"), by their names: "+
				"no path from the root, no \"..\", no macro", m[1], strings.TrimSpace(m[2]))
		}
	}
	return nil
}

func isHeader(name string) bool {
	return !strings.HasPrefix(name, "/") && !slices.Contains(strings.Split(name, "/"), "..")
}
