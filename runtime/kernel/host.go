package kernel

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

//go:embed types.h
var typesHeader string

//go:embed host.h
var hostHeader string

// noAssembly makes the compiler reject assembly in the source, which could make system calls.
const noAssembly = "#pragma GCC poison asm __asm __asm__\n"

var (
	barriers = regexp.MustCompile(`\b__(syncthreads|syncwarp|shfl_\w+)\b`)
	dynamic  = regexp.MustCompile(`\bextern\s+__shared__\b`)
	externC  = regexp.MustCompile(`\bextern\s+"C"`)
)

// hostText returns the complete text to compile: the host's emulation of CUDA, the source, and the call of the kernel.
func (s *Source) hostText(params []declared, plain bool) string {
	text := s.Text
	if plain {
		text = externC.ReplaceAllString(text, `         `)
	}
	fibers, rings := 0, 0
	if s.names(included) {
		rings = 1
	}
	if rings == 1 || s.anywhere(barriers, blank) {
		fibers = 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#define DQ_FIBERS %d\n#define DQ_RINGS %d\n%s%s%s#line %d %q\n%s\n#line 1 \"daqiri-run\"\n", fibers, rings, hostHeader, typesHeader, noAssembly,
		s.Line, s.File, forHost(text))
	b.WriteString("struct dq_params {\n")
	for i, p := range params {
		fmt.Fprintf(&b, "%s;\n", renamed(p, i))
	}
	b.WriteString("char dq_last; };\nstatic void dq_call(void *const *args) {\n(void)args;\n" + s.Entry + "(")
	for i := range params {
		comma := ","
		if i == len(params)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "*(__typeof__(((struct dq_params *)0)->dq_%d) *)args[%d]%s", i, i, comma)
	}
	b.WriteString(");\n}\nconst char dq_types[] = {")
	for i := range params {
		at := fmt.Sprintf("((struct dq_params *)0)->dq_%d", i)
		fmt.Fprintf(&b, "DQ_CLASS(%s), DQ_BYTES(%s),\n", at, at)
	}
	b.WriteString("0};\n")
	return b.String()
}

// renamed returns a parameter's declaration with a generated name, which no macro of the source can match.
func renamed(p declared, i int) string {
	name := fmt.Sprintf("dq_%d", i)
	if p.name == "" {
		return p.text + " " + name
	}
	return strings.TrimSuffix(p.text, p.name) + name
}

// buildHost builds a kernel that runs on the host.
func (s *Source) buildHost() (*Kernel, error) {
	if s.PTX {
		return nil, s.errorf("PTX is for a GPU, and memory of the host was asked for; hint: src or file, which the host runs, too")
	}
	names, all := kernelsOf(s.Text)
	params, err := s.choose(names, all)
	if err != nil {
		return nil, err
	}
	if dynamic.MatchString(blank(s.Text)) {
		return nil, s.errorf("the host can't run it: extern __shared__ has no size; hint: a __shared__ array with one")
	}
	c, err := findCompiler()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Title, err)
	}
	f, err := openFolder()
	if err != nil {
		return nil, fmt.Errorf("%s: no folder for what is made of it: %w", s.Title, err)
	}
	defer f.close()
	text := s.hostText(params, c.plain)
	path := f.path(key(append(c.options(), c.identity(), text, joined(s.headers()))...), ".so")
	n, err := s.load(f, path, text, c)
	if err != nil {
		return nil, err
	}
	k := s.kernel(n, native.HostGPU)
	if k.Params, err = hostParams(n.Types(), params); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Title, err)
	}
	return k, nil
}

// load loads the cached library, or builds it if it is missing or cannot be loaded.
func (s *Source) load(f folder, path, text string, c compiler) (native.Kernel, error) {
	if _, err := os.Stat(path); err == nil {
		if n, err := s.fromLibrary(path); err == nil {
			return n, nil
		}
	}
	if err := f.keep(path, func(dir, at string) error { return s.compile(dir, at, text, c) }); err != nil {
		return native.Kernel{}, err
	}
	return s.fromLibrary(path)
}

// fromLibrary checks and loads a library. None of its code runs before the kernel does.
func (s *Source) fromLibrary(path string) (native.Kernel, error) {
	if err := checkLibrary(path); err != nil {
		return native.Kernel{}, s.errorf("%v", err)
	}
	return native.KernelFromLibrary(s.Title, path)
}

// hostLacks is appended to errors of the host's compiler.
const hostLacks = "hint: this was compiled for the host (memory \"host\"), which has threads, blocks, __shared__, __syncthreads, __shfl_*_sync and atomics, " +
	"and not the rest of CUDA's library"
