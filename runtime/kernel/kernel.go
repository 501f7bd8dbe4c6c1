package kernel

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Source is the source of a kernel.
type Source struct {
	Title string // name in errors: "kernel power"; empty: derived from the entry
	Text  string // CUDA source, or PTX
	PTX   bool
	File  string            // file name in compiler messages
	Line  int               // line of the text's first line in File
	Entry string            // kernel's name; empty: the only kernel of the text
	GPU   int               // GPU number; native.HostGPU: the host
	Own   map[string]string // its own headers, by name
}

// Kernel is a kernel that can be launched.
type Kernel struct {
	Title, Entry string
	GPU          int // native.HostGPU: the host
	Params       []Param
	native       native.Kernel
}

// OnHost reports whether the kernel runs on the host.
func (k *Kernel) OnHost() bool { return k.GPU == native.HostGPU }

// Native returns the native kernel; the caller must keep k alive while using it.
func (k *Kernel) Native() native.Kernel { return k.native }

// Build builds a kernel. Compile errors have the line numbers of the source.
func Build(s Source) (*Kernel, error) {
	s.Line = max(s.Line, 1)
	if !s.PTX {
		s.Text = withoutLaunches(s.Text)
	}
	if s.Entry == "" {
		s.onlyEntry()
	}
	if s.Title == "" {
		s.Title = strings.TrimSpace("kernel " + s.Entry)
	}
	if err := s.checkIncludes(); err != nil {
		return nil, err
	}
	if s.GPU == native.HostGPU {
		return s.buildHost()
	}
	return s.buildDevice()
}

func (s *Source) kernel(n native.Kernel, gpu int) *Kernel {
	k := &Kernel{Title: s.Title, Entry: s.Entry, GPU: gpu, native: n}
	runtime.AddCleanup(k, native.Kernel.Free, n)
	return k
}

func (s *Source) errorf(format string, args ...any) error {
	return invalid("%s: %s", s.Title, fmt.Sprintf(format, args...))
}

// onlyEntry sets an empty Entry to the only kernel of the source, if there is exactly one.
func (s *Source) onlyEntry() {
	names, _ := kernelsOf(s.Text)
	if s.PTX {
		_, names, _ = ptxParams(s.Text, "")
	}
	if len(names) == 1 {
		s.Entry = names[0]
	}
}

// choose returns the parameters of the selected kernel.
func (s *Source) choose(names []string, all map[string][]declared) ([]declared, error) {
	params, ok := all[template(s.Entry)]
	if !ok {
		return nil, s.errorf("%s", noEntry("its source", s.Entry, names))
	}
	return params, nil
}

// template returns the name of an entry without its template arguments: "put_bw" of "put_bw<WARP>".
func template(entry string) string {
	name, _, _ := strings.Cut(entry, "<")
	return strings.TrimSpace(name)
}

func noEntry(what, entry string, names []string) string {
	switch list := strings.Join(names, ", "); {
	case len(names) == 0:
		return what + " has no kernel, a __global__ function"
	case entry == "":
		return fmt.Sprintf("%s has several kernels, of which entry selects one: %s", what, list)
	default:
		return fmt.Sprintf("%s has no kernel '%s'; it has %s", what, entry, list)
	}
}

var (
	atLine    = regexp.MustCompile(`(?m)^(.+?)\((\d+)\): `)          // position in NVRTC's messages
	errorLine = regexp.MustCompile(`(?m)^.*\b(?:fatal )?error\b.*$`) // of any compiler
	column    = regexp.MustCompile(`^(.*?:\d+):\d+: `)               // column of a position
)

const shownErrors = 4

// sourceError returns an error with the first messages of a compiler, followed by hint.
func (s *Source) sourceError(log, hint string) error {
	if strings.TrimSpace(log) == "" {
		return invalid("%s: its source doesn't compile, and the compiler reports nothing; hint: run it by hand", s.Title)
	}
	lines := errorLine.FindAllString(atLine.ReplaceAllString(log, "$1:$2: "), -1)
	if len(lines) == 0 {
		lines = strings.Split(strings.TrimSpace(log), "\n")
	}
	if more := len(lines) - shownErrors; more > 0 {
		lines = append(lines[:shownErrors], fmt.Sprintf("and %d more", more))
	}
	text := "its source doesn't compile:"
	for _, line := range lines {
		text += "\n  " + column.ReplaceAllString(strings.TrimSpace(line), "$1: ")
	}
	if hint != "" {
		text += "\n  " + hint
	}
	return invalid("%s: %s", s.Title, text)
}

// invalid returns a native.ErrInvalid with a message.
func invalid(format string, args ...any) error {
	return &native.Error{Object: fmt.Sprintf(format, args...), Code: native.ErrInvalid}
}
