package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/tests/debian"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// nvrtcChild is set in the process that compiles: a process opens NVRTC once, and other tests open its stand-in.
const nvrtcChild = "DAQIRI_TEST_NVRTC"

// TestNVRTC checks each kernel of the sample scripts and of the tests with NVRTC, which needs no GPU and reads sources differently from compilers for the
// host. The library is Debian's, of a later release.
func TestNVRTC(t *testing.T) {
	if os.Getenv(nvrtcChild) != "" {
		compileAll(t)
		return
	}
	root, err := debian.Root("nvrtc-trixie", "trixie", "main contrib non-free", `builtins=$(apt-cache depends libnvrtc12 | sed -n 's/.*Depends: \(libnvrtc-builtins[^ ]*\).*/\1/p')
apt-get -q download libnvrtc12 $builtins`)
	if err != nil {
		require.Lack(t, "nvrtc", err.Error())
	}
	libraries, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/libnvrtc.so.12"))
	if len(libraries) != 1 {
		t.Fatalf("%s has %d libraries", root, len(libraries))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNVRTC$", "-test.v")
	cmd.Env = append(os.Environ(), nvrtcChild+"=1", "DAQIRI_NVRTC="+libraries[0], "LD_LIBRARY_PATH="+filepath.Dir(libraries[0]))
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("\n--- PASS: TestNVRTC")) {
		t.Errorf("%v\n%s", err, out)
	}
}

var (
	ofKernel = regexp.MustCompile(`(?:template <([^>]*)>\s*)?__global__ void (\w+)\(`)
	longText = regexp.MustCompile(`(?s)\[\[(.*?)\]\]`)
)

// entriesOf returns names of kernels that let all kernels of a text be compiled: two instances of each template, and a plain one.
func entriesOf(text string) (entries []string) {
	plain := ""
	for _, m := range ofKernel.FindAllStringSubmatch(text, -1) {
		if m[1] == "" {
			plain = m[2]
			continue
		}
		for _, value := range []string{"0", "1"} {
			var values []string
			for parameter := range strings.SplitSeq(m[1], ",") {
				words := strings.Fields(parameter)
				values = append(values, "("+strings.Join(words[:len(words)-1], " ")+")"+value)
			}
			entries = append(entries, m[2]+"<"+strings.Join(values, ", ")+">")
		}
	}
	if len(entries) == 0 && plain != "" {
		entries = []string{plain}
	}
	return entries
}

// hostOnly are scripts whose kernels call functions of the host's C library.
var hostOnly = []string{"tests/gpunetio/testdata/gn_idle.lua", "tests/gpunetio/testdata/gn_stopped.lua"}

// compileAll compiles sources with kernels: files of CUDA, and long strings of Lua.
func compileAll(t *testing.T) {
	n := 0
	for _, file := range tree.Files(t) {
		if !strings.HasPrefix(file, "tests/gpunetio/testdata/") && !strings.HasPrefix(file, "scripts/") || slices.Contains(hostOnly, file) {
			continue
		}
		var texts []string
		switch text := tree.Read(t, file); filepath.Ext(file) {
		case ".cu":
			texts = []string{text}
		case ".lua":
			for _, m := range longText.FindAllStringSubmatch(text, -1) {
				texts = append(texts, m[1])
			}
		}
		for _, text := range texts {
			for _, entry := range entriesOf(text) {
				n++
				t.Run(file+" "+entry, func(t *testing.T) {
					t.Parallel()
					s := &Source{Title: file, Text: withoutLaunches(text), File: filepath.Base(file), Line: 1, Entry: entry}
					s.FindHeaders([]string{filepath.Dir(filepath.Join(tree.Root, file))})
					compile(t, s)
				})
			}
		}
	}
	if n < 40 {
		t.Errorf("%d sources", n)
	}
}

// compile checks a source without generating code, which takes minutes for the one that calls every function.
func compile(t *testing.T, s *Source) {
	t.Helper()
	source := s.forNVRTC(80)
	source.Options = append(source.Options, "--fdevice-syntax-only")
	if out, err := native.NVRTCCompile(source); err != nil || strings.Contains(out.Log, "warning") {
		t.Errorf("%v\n%s", err, out.Log)
	}
}
