package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// compileLimit is the maximum run time of a compiler.
var compileLimit = time.Minute

// endLimit is how long a killed compiler and its child processes may keep its output open.
const endLimit = 10 * time.Second

// compiler is a compiler for this host.
type compiler struct {
	path  string
	plain bool // for C only
}

// findCompiler searches PATH for a C++ compiler, then for a C compiler.
func findCompiler() (compiler, error) {
	for i, name := range []string{"c++", "g++", "clang++", "cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return compiler{path, i > 2}, nil
		}
	}
	return compiler{}, &native.Error{Object: "the host runs kernels that a compiler makes of their source, and there is none (c++, cc); " +
		"hint: install g++ (apt-get install g++), or use a GPU", Code: native.ErrNotSupported}
}

// identity identifies the current version of the compiler's file.
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
	if runtime.GOARCH == "arm64" { // otherwise a constructor of libgcc detects the processor's features
		language = append(language, "-mno-outline-atomics")
	}
	return append(language, "-O2", "-fPIC", "-shared", "-nostartfiles", "-w", "-fno-strict-aliasing", "-I", ".")
}

// systemFolders are the usual folders of compilers and headers, and the loader's cache.
const systemFolders = "/usr:/bin:/lib:/lib64:/lib32:/opt:/nix/store:/gnu/store:/etc/ld.so.cache"

// folderVariables are environment variables with folders for compilers, linkers and loaders; keptVariables are all variables passed to a compiler.
var (
	folderVariables = []string{"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "LD_LIBRARY_PATH"}
	keptVariables   = append([]string{"PATH", "GCC_EXEC_PREFIX"}, folderVariables...)
)

// roots returns the folders and files that the compiler may read, separated by colons.
func (c compiler) roots() string {
	all := systemFolders
	if real, err := filepath.EvalSymlinks(c.path); err == nil {
		if home := filepath.Dir(filepath.Dir(real)); home != "/" {
			all += ":" + home
		}
	}
	for _, name := range folderVariables {
		if folders := os.Getenv(name); folders != "" {
			all += ":" + folders
		}
	}
	return all
}

func compilerEnv(dir string) []string {
	env := []string{"LC_ALL=C", "TMPDIR=" + dir, "CCACHE_DISABLE=1"}
	for _, name := range keptVariables {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// compile runs the compiler in a separate folder, in a confined process that ends with this one (native/compute/compiler.c).
func (s *Source) compile(dir, at, text string, c compiler) error {
	if err := os.WriteFile(filepath.Join(dir, "kernel.cu"), []byte(text), 0o600); err != nil {
		return err
	}
	if err := writeHeaders(dir, s.hostHeaders()); err != nil {
		return err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	defer ours.Close()
	ctx, cancel := context.WithTimeout(context.Background(), compileLimit)
	defer cancel()
	var output bytes.Buffer
	run := func(program string, argv []string) error {
		cmd := exec.CommandContext(ctx, program)
		cmd.Args, cmd.Dir, cmd.Env = argv, dir, compilerEnv(dir)
		cmd.ExtraFiles = []*os.File{theirs}
		cmd.Cancel = ours.Close
		cmd.WaitDelay = endLimit
		cmd.Stdout, cmd.Stderr = &output, &output
		return cmd.Run()
	}
	argv := append([]string{c.path}, append(c.options(), "-o", at, "kernel.cu", "-lm")...)
	err = run("/proc/self/exe", append([]string{native.CompilerName, dir, c.roots()}, argv...))
	if errors.Is(err, syscall.ENOEXEC) { // under user-mode emulation Linux cannot start this program, but can start the compiler
		err = run(c.path, argv)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %s did not end in %s", s.Title, c.path, compileLimit)
	case errors.As(err, &exit):
		return s.sourceError(output.String(), hostLacks)
	}
	return fmt.Errorf("%s: %s: %w", s.Title, c.path, err)
}
