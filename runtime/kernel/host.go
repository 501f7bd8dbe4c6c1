package kernel

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

//go:embed types.h
var typesHeader string

//go:embed host.h
var hostHeader string

// compileLimit ends a compiler that doesn't.
const compileLimit = time.Minute

// compiler is what makes code for this host.
type compiler struct {
	path  string
	plain bool // of C alone
}

// findCompiler looks for one of C++, else of C, in the folders of PATH.
func findCompiler() (compiler, error) {
	for i, name := range []string{"c++", "g++", "clang++", "cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return compiler{path, i > 2}, nil
		}
	}
	return compiler{}, &native.Error{Object: "the host runs kernels that a compiler makes of their source, and there is none (c++, cc); " +
		"hint: install g++ (apt-get install g++), or use a GPU", Code: native.ErrNotSupported}
}

// identity is the compiler's file, as it is now.
func (c compiler) identity() string {
	real, err := filepath.EvalSymlinks(c.path)
	if err != nil {
		return c.path
	}
	info, err := os.Stat(real)
	if err != nil {
		return real
	}
	return fmt.Sprint(real, info.Size(), info.ModTime().UnixNano())
}

func (c compiler) options() []string {
	language := []string{"-x", "c++", "-std=gnu++17"}
	if c.plain {
		language = []string{"-x", "c", "-std=gnu11"}
	}
	return append(language, "-O2", "-fPIC", "-shared", "-w", "-iquote", ".")
}

var (
	barriers = regexp.MustCompile(`\b__(syncthreads|syncwarp|shfl_\w+)\b`)
	dynamic  = regexp.MustCompile(`\bextern\s+__shared__\b`)
	externC  = regexp.MustCompile(`\bextern\s+"C"`)
)

// hostText is the whole text for the compiler: what of CUDA the host can do, the source, and the call of the kernel.
func (s *Source) hostText(params []declared, plain bool) string {
	text := s.Text
	if plain {
		text = externC.ReplaceAllString(text, `         `)
	}
	fibers, rings := 0, 0
	if included.MatchString(text) {
		rings = 1
	}
	if rings == 1 || barriers.MatchString(blank(text)) {
		fibers = 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#define DQ_FIBERS %d\n#define DQ_RINGS %d\n%s%s#line %d %q\n%s\n#line 1 \"daqiri-run\"\n", fibers, rings, hostHeader, typesHeader, s.Line, s.File, text)
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
	b.WriteString(");\n}\n__attribute__((constructor)) static void dq_tell(void) {\n")
	for i := range params {
		at := fmt.Sprintf("((struct dq_params *)0)->dq_%d", i)
		fmt.Fprintf(&b, "dq_type(%d, DQ_CLASS(%s), sizeof(%s));\n", i, at, at)
	}
	b.WriteString("}\n")
	return b.String()
}

// renamed is a parameter's declaration under a name of ours, which no macro of the source has.
func renamed(p declared, i int) string {
	name := fmt.Sprintf("dq_%d", i)
	if p.name == "" {
		return p.text + " " + name
	}
	return strings.TrimSuffix(p.text, p.name) + name
}

// buildHost makes a kernel that the host runs.
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
	path := f.path(key(append(c.options(), c.identity(), text, joined(headersOf(s.Text)))...), ".so")
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

// load loads what is there, and makes it where it isn't, or can't be loaded any more.
func (s *Source) load(f folder, path, text string, c compiler) (native.Kernel, error) {
	if _, err := os.Stat(path); err == nil {
		if n, err := native.KernelFromLibrary(s.Title, path); err == nil {
			return n, nil
		}
	}
	if err := f.keep(path, func(dir, at string) error { return s.compile(dir, at, text, c) }); err != nil {
		return native.Kernel{}, err
	}
	return native.KernelFromLibrary(s.Title, path)
}

// compile runs the compiler in a folder of its own.
func (s *Source) compile(dir, at, text string, c compiler) error {
	if err := os.WriteFile(filepath.Join(dir, "kernel.cu"), []byte(text), 0o600); err != nil {
		return err
	}
	if err := writeHeaders(dir, headersOf(s.Text)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), compileLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, append(c.options(), "-o", at, "kernel.cu", "-lm")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %s did not end in %s", s.Title, c.path, compileLimit)
	case errors.As(err, &exit):
		return s.sourceError(said.String(), hostLacks)
	}
	return fmt.Errorf("%s: %s: %w", s.Title, c.path, err)
}

// hostLacks stands behind errors of a compiler for the host.
const hostLacks = "hint: this was compiled for the host (memory \"host\"), which has threads, blocks, __shared__, __syncthreads, __shfl_*_sync and atomics, " +
	"and not the rest of CUDA's library"
