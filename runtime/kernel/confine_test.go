package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRefusedSources checks that kernels that use more than their memory are rejected before any of their code runs, with an error that names the
// symbol.
func TestRefusedSources(t *testing.T) {
	cacheHere(t)
	for name, c := range map[string]struct{ text, says string }{
		"a program":           {`extern "C" int system(const char *); __global__ void f(int *a) { *a = system("true"); }`, "its source uses system, which a kernel on the host can't call"},
		"a program, weakly":   {`extern "C" int system(const char *) __attribute__((weak)); __global__ void f(int *a) { *a = system("true"); }`, "uses system,"},
		"a file and a socket": {"#include <fcntl.h>\n#include <sys/socket.h>\n__global__ void f(int *a) { a[0] = open(\"x\", 0); a[1] = socket(1, 1, 0); }", "uses open, socket,"},
		"Linux itself":        {`extern "C" long syscall(long, ...); __global__ void f(long *a) { *a = syscall(39); }`, "uses syscall,"},
		"a variable":          {`extern "C" char **environ; __global__ void f(char *a) { *a = environ[0][0]; }`, "uses environ,"},
		"assembly":            {"__global__ void f(long *a) {\n__asm__ volatile(\"syscall\" : \"=a\"(*a) : \"0\"(39)); }", "test.lua:11: error: "},
		"pasted assembly":     {"#define PASTE(a, b) a##b\n__global__ void f(long *a) { PASTE(__a, sm__)(\"nop\"); }", "error: "},
		"a constructor":       {`static int x; __attribute__((constructor)) static void first() { x = 1; } __global__ void f(int *a) { *a = x; }`, "code that runs before or after the kernel"},
		"a destructor":        {`static int x; __attribute__((destructor)) static void last() { x = 1; } __global__ void f(int *a) { *a = x; }`, "code that runs before or after the kernel"},
		"a dynamic variable":  {`static double x = cos((double)sizeof(int) + clock()); __global__ void f(double *a) { *a = x; }`, "code that runs before or after the kernel"},
		"an indirect function": {`extern "C" { typedef int (*fn)(int); static int one(int n) { return n; } static fn pick(void) { return one; } static int g(int) __attribute__((ifunc("pick"))); }
__global__ void f(int *a) { *a = g(*a); }`, "indirect function"},
		"a path":           {"#include \"/etc/passwd\"\n__global__ void f(int *a) {}", "its source has #include \"/etc/passwd\"; hint: a kernel includes headers"},
		"a path in spaces": {" # /* */ include </etc/passwd>\n__global__ void f(int *a) {}", "its source has #include"},
		"a path upwards":   {"#include \"x/../../../etc/passwd\"\n__global__ void f(int *a) {}", "its source has #include"},
		"over lines":       {"#inc\\\nlude \"/etc/passwd\"\n__global__ void f(int *a) {}", "its source has #include"},
		"a digraph":        {"%:include \"/etc/passwd\"\n__global__ void f(int *a) {}", "its source has #include"},
		"a macro":          {"#define FILE_ \"/etc/passwd\"\n#include FILE_\n__global__ void f(int *a) {}", "its source has #include FILE_"},
		"an import":        {"#import \"/etc/passwd\"\n__global__ void f(int *a) {}", "its source has #import"},
	} {
		if _, err := Build(onHost(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAllowedSources checks that common calls are allowed, and that text that only resembles an include is ignored.
func TestAllowedSources(t *testing.T) {
	cacheHere(t)
	for name, text := range map[string]string{
		"headers":    "#include <math.h>\n#include <limits.h>\n#include <stdint.h>\n__global__ void f(float *a) { a[0] = max(sinf(a[0]), fmodf(a[1], 2)) + hypot(a[2], a[3]); }",
		"printing":   "__global__ void f(int *a) { printf(\"%d\\n\", *a); fprintf(stderr, \"%s\\n\", \"x\"); }",
		"memory":     "__global__ void f(int *a) { int *b = new int[*a]; memset(b, 0, 4); a[0] = b[0]; delete[] b; }",
		"remarks":    "// #include \"/etc/passwd\"\n/*\n#include \"/etc/shadow\"\n*/\nstatic const char *const s = \"\\n#include \\\"/x\\\"\";\n__global__ void f(char *a) { *a = s[0]; }",
		"arithmetic": "__global__ void f(unsigned long long *a) { __int128 b = (__int128)a[0] * a[1] / (long long)a[2]; a[0] = __popcll(a[0]) + __builtin_parityll(a[1]) + (unsigned long long)(float)b; }",
		"assert":     "#include <assert.h>\n__global__ void f(int *a) { assert(*a); }",
	} {
		if _, err := Build(onHost(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCompilerFiles checks that a compiler cannot open files outside its folders, regardless of the source.
func TestCompilerFiles(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.h")
	if err := os.WriteFile(secret, []byte("int this_is_secret = \"text\" + ;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := onHost("")
	err := s.compile(dir, filepath.Join(dir, "k.so"), "#include \""+secret+"\"\n", must(findCompiler())(t))
	if err == nil || strings.Contains(err.Error(), "this_is_secret") || !strings.Contains(err.Error(), "ermission denied") {
		t.Errorf("%v", err)
	}
}

// sleeper puts a compiler into PATH that runs a sleeping child process and waits for it.
func sleeper(t *testing.T, seconds string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\n/bin/sleep " + seconds + "\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "c++"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// sleeps reports whether a process sleeps for the given time.
func sleeps(t *testing.T, seconds string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		if line, _ := os.ReadFile(name); bytes.Equal(line, []byte("/bin/sleep\x00"+seconds+"\x00")) {
			return true
		}
	}
	return false
}

// TestCompileLimit checks that a compiler that exceeds the limit is killed together with its child processes.
func TestCompileLimit(t *testing.T) {
	cacheHere(t)
	seconds := fmt.Sprintf("86399.%d", os.Getpid()) // unique to this run
	sleeper(t, seconds)
	was := compileLimit
	compileLimit = 2 * time.Second
	defer func() { compileLimit = was }()
	if _, err := Build(onHost(scale)); err == nil || !strings.Contains(err.Error(), "did not end in 2s") {
		t.Errorf("%v", err)
	}
	for until := time.Now().Add(time.Minute); sleeps(t, seconds); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("what the compiler started goes on")
		}
	}
}
