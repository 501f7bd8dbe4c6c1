package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel/doca"
	"github.com/daqiri/daqiri-run/tests/tree"
)

func callsFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../tests/gpunetio/testdata/gn_doca_calls.cu")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// gpus returns the processors to build for: the host, and a GPU where there is one; NVRTC of other tests is a stand-in.
func gpus() []int {
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		return []int{native.HostGPU, 0}
	}
	return []int{native.HostGPU}
}

// TestDocaCalls builds a source that calls each function with DOCA's names, in each instance of its template.
func TestDocaCalls(t *testing.T) {
	cacheHere(t)
	text := callsFile(t)
	for _, gpu := range gpus() {
		if _, err := Build(Source{Text: text, File: "gn_doca_calls.cu", Entry: "verbs", GPU: gpu}); err != nil { // all kernels of the file
			t.Errorf("GPU %d: %v", gpu, err)
		}
	}
}

// TestDocaNames: each function of the list exists, and is called by the source of TestDocaCalls.
func TestDocaNames(t *testing.T) {
	cacheHere(t)
	text := callsFile(t)
	var b strings.Builder
	known, n := map[string]bool{}, 0
	for _, f := range doca.Functions() {
		if !slices.Contains([]string{doca.Here, doca.Differs, doca.Nothing, doca.Impossible}, f.State) || f.Family == "" || len(f.Names) == 0 ||
			(f.Note == "") != (f.State == doca.Here || f.State == doca.Nothing) {
			t.Errorf("functions.txt: %+v", f)
		}
		for _, name := range f.Names {
			if known[name] {
				t.Errorf("functions.txt has %s twice", name)
			}
			known[name] = true
			n++
			fmt.Fprintf(&b, "using ::%s;\n", name)
			if called := strings.Contains(text, name+"(") || strings.Contains(text, name+"<"); called == (f.State == doca.Impossible) {
				t.Errorf("%s, %s: gn_doca_calls.cu calls it: %v", name, f.State, called)
			}
			if headers := headersAbove(f.Header); !headers {
				t.Errorf("%s: there is no header %s", name, f.Header)
			}
		}
	}
	if n < 170 {
		t.Errorf("functions.txt has %d functions", n)
	}
	source := "#include \"doca_gpu.h\"\nnamespace names {\n" + b.String() + "}\n__global__ void none(int) {}\n"
	if _, err := Build(onHost(source)); err != nil {
		t.Error(err)
	}
	if _, err := Build(onHost(strings.Replace(source, "using ::", "using ::no_", 1))); err == nil {
		t.Error("an unknown name compiles")
	}
}

func headersAbove(name string) bool {
	_, err := os.Stat(filepath.Join("doca", name))
	return err == nil
}

// TestDocaImpossible: a call of what needs a NIC does not compile, and the error names the function and the reason.
func TestDocaImpossible(t *testing.T) {
	cacheHere(t)
	n := 0
	for _, f := range doca.Functions() {
		if f.State != doca.Impossible {
			continue
		}
		for _, name := range f.Names {
			n++
			_, err := Build(onHost("#include <doca_gpu.h>\n__global__ void k(void *p, int n) { " + name + "(p, n); }\n"))
			if err == nil || !strings.Contains(err.Error(), name+": ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n == 0 || n > 10 {
		t.Errorf("%d functions are impossible, ten at most", n)
	}
}

// TestHostHalf: functions that launch kernels are left out, and lines keep their numbers.
func TestHostHalf(t *testing.T) {
	cacheHere(t)
	text := `#include <cuda_runtime.h>
#include <doca_error.h>
template <bool twice> __global__ void k(int *out) { *out = twice ? 2 : 1; }
extern "C" {
static int helper(int a) { return a; }
doca_error_t launch(cudaStream_t stream, int *out)
{
	if (out == NULL) { return DOCA_ERROR_INVALID_VALUE; }
	k<true><<<1, 1, 0, stream>>>(out);
	return DOCA_SUCCESS;
}
} /* extern C */
__global__ void last(int *out) { *out = __LINE__; }
`
	s := onHost(text)
	s.Line = 1
	for entry, want := range map[string]int64{"k<true>": 2, "k<false>": 1, "last": 13} {
		s.Entry = entry
		out := array(t, "host", "int32", native.HostGPU, 0)
		launch(t, build(t, s), 1, 1, out)
		if got, _ := out.Get(0); got != want {
			t.Errorf("%s: %v, want %d", entry, got, want)
		}
	}
	s.Entry = "none<1>"
	if _, err := Build(s); err == nil || !strings.Contains(err.Error(), "has no kernel 'none<1>'; it has k, last") {
		t.Error(err)
	}
}

// TestHostHeader: a source may share a header with its program, which declares functions of the host, and packs structures.
func TestHostHeader(t *testing.T) {
	cacheHere(t)
	s := onHost(tree.Read(t, "tests/gpunetio/testdata/gn_doca_sample.cu"))
	s.FindHeaders([]string{filepath.Join(tree.Root, "tests/gpunetio/testdata")})
	out := array(t, "host", "int32", native.HostGPU, 0)
	launch(t, build(t, s), 1, 1, out)
	if got, _ := out.Get(0); got != int64(23) {
		t.Error(got)
	}
}

// TestPackedAhead: the attribute moves in front of the structure's name, lines stay, and braces in comments and strings do not count.
func TestPackedAhead(t *testing.T) {
	for text, want := range map[string]string{
		"struct a { int b; } __attribute__((packed));":                                         "struct __attribute__((packed)) a { int b; } ;",
		"typedef union\n{ /* } */ int b; }\n__attribute__((__packed__\n)) c;":                  "typedef union __attribute__((packed))\n{ /* } */ int b; }\n\n c;",
		"struct a { struct { int b; } __attribute__((packed)) c; } __attribute__((packed)) d;": "struct __attribute__((packed)) a { struct __attribute__((packed)) { int b; }  c; }  d;",
		"struct a { int b __attribute__((packed)); };":                                         "struct a { int b __attribute__((packed)); };",
		"// struct a { } __attribute__((packed))\nint f(void) { return 1; }":                   "// struct a { } __attribute__((packed))\nint f(void) { return 1; }",
		"enum a { b } __attribute__((packed));":                                                "enum a { b } __attribute__((packed));",
		"} __attribute__((packed));":                                                           "} __attribute__((packed));",
		"struct a { int b; } __attribute__((packed)) __attribute__((may_alias));":              "struct __attribute__((packed)) a { int b; }  __attribute__((may_alias));",
	} {
		if got := packedAhead(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestOwnHeaders: a source includes headers of its folder and of the one above, which in turn include others, and none that leads elsewhere.
func TestOwnHeaders(t *testing.T) {
	cacheHere(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"common.h": "#pragma once\n#define A 40\n", "device/own.h": "#include \"../common.h\"\n#define B (A + 2)\n",
		"device/bad.h": "#include \"/etc/passwd\"\n"} {
		if err := os.MkdirAll(filepath.Join(dir, "device"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folders := []string{filepath.Join(dir, "device"), dir}
	s := onHost("#include \"own.h\"\n#include \"../common.h\"\n__global__ void k(int *out) { *out = B; }\n")
	s.FindHeaders(folders)
	out := array(t, "host", "int32", native.HostGPU, 0)
	launch(t, build(t, s), 1, 1, out)
	if got, _ := out.Get(0); got != int64(42) {
		t.Error(got)
	}
	for text, want := range map[string]string{"bad.h": "/etc/passwd", "../../common.h": "../../common.h"} {
		s := onHost("#include \"" + text + "\"\n__global__ void k(int *out) { *out = 1; }\n")
		s.FindHeaders(folders)
		if _, err := Build(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
