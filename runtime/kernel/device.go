package kernel

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel/doca"
)

//go:embed device.h
var deviceHeader string

// nameLine precedes PTX in a cached file and holds the kernel's name in the PTX.
const nameLine = "// daqiri-run entry "

// buildDevice builds a kernel for a GPU.
func (s *Source) buildDevice() (*Kernel, error) {
	if s.PTX {
		return s.fromPTX(s.Text, s.Entry, nil)
	}
	names, all := kernelsOf(s.Text)
	if s.Entry == "" {
		if _, err := s.choose(names, all); err != nil {
			return nil, err
		}
	}
	f, err := openFolder()
	if err != nil {
		return nil, fmt.Errorf("%s: no folder for what is made of it: %w", s.Title, err)
	}
	defer f.close()
	ptx, name, err := s.ptx(f)
	if err != nil {
		return nil, err
	}
	return s.fromPTX(ptx, name, all[template(s.Entry)])
}

// ptx returns the PTX of the source from NVRTC or the cache.
func (s *Source) ptx(f folder) (ptx, name string, err error) {
	arch, version, err := s.target()
	if err != nil {
		return "", "", err
	}
	source := s.forNVRTC(arch)
	path := f.path(key(append(source.Options, version, s.Entry, source.Text, joined(source.Headers))...), ".ptx")
	if kept, err := os.ReadFile(path); err == nil {
		if first, rest, ok := strings.Cut(string(kept), "\n"); ok && strings.HasPrefix(first, nameLine) {
			return rest, strings.TrimPrefix(first, nameLine), nil
		}
	}
	out, err := native.NVRTCCompile(source)
	switch {
	case errors.Is(err, native.ErrInvalid):
		return "", "", s.sourceError(out.Log, "")
	case err != nil:
		return "", "", err
	}
	kept := f.keep(path, func(_, at string) error { return os.WriteFile(at, []byte(nameLine+out.Name+"\n"+out.PTX), 0o600) })
	_ = kept // on error the next run compiles again
	return out.PTX, out.Name, nil
}

// forNVRTC returns what NVRTC compiles for a compute capability.
func (s *Source) forNVRTC(arch int) native.NVRTCSource {
	standard := "--std=c++17"
	if s.names(docaNamed) {
		standard = "--std=c++20" // designated initializers
	}
	headers := s.headers()
	for name := range s.Own {
		headers[name] = packedAhead(headers[name])
	}
	for _, name := range append(doca.System, "stdint.h", "stddef.h") {
		headers[name] = ""
	}
	return native.NVRTCSource{What: s.Title, Text: fmt.Sprintf("%s%s#line %d %q\n%s\n", deviceHeader, typesHeader, s.Line, s.File, packedAhead(s.Text)), Name: s.File,
		Entry: s.Entry, Options: []string{fmt.Sprintf("--gpu-architecture=compute_%d", arch), standard,
			"--device-as-default-execution-space"}, Headers: headers} // as compilers for the host: headers of samples declare functions of the host
}

// target returns the compute capability to compile for and the version of NVRTC.
func (s *Source) target() (arch int, version string, err error) {
	major, minor, err := native.NVRTCVersion(s.Title)
	if err != nil {
		return 0, "", err
	}
	_, gpus, err := native.GPUs()
	if err != nil {
		return 0, "", fmt.Errorf("%s: %w", s.Title, err)
	}
	if s.GPU < 0 || s.GPU >= len(gpus) {
		return 0, "", s.errorf("there is no GPU %d: this host has %d, numbered from 0", s.GPU, len(gpus))
	}
	arch, err = native.NVRTCArch(s.Title, gpus[s.GPU].Capability())
	return arch, fmt.Sprintf("nvrtc %d.%d", major, minor), err
}

// fromPTX loads an entry with the driver.
func (s *Source) fromPTX(ptx, name string, from []declared) (*Kernel, error) {
	params, entries, ok := ptxParams(ptx, name)
	if !ok {
		return nil, s.errorf("%s", noEntry("its PTX", name, entries))
	}
	merge(params, from)
	n, err := native.KernelFromPTX(s.Title, s.GPU, ptx, name)
	if err != nil {
		return nil, err
	}
	k := s.kernel(n, s.GPU)
	k.Params = params
	return k, nil
}
