package native

import (
	"io/fs"

	"github.com/daqiri/daqiri-run/native/gpunetio/device"
)

// KernelHeaders returns the headers that a kernel's source may include, by include name: "gn.h", with those that it includes
// ("gpunetio/device/gn_ring.h").
func KernelHeaders() map[string]string {
	names, err := fs.Glob(device.Headers, "*.h")
	if err != nil {
		panic(err) // the pattern is valid
	}
	headers := map[string]string{}
	for _, name := range names {
		text, err := device.Headers.ReadFile(name)
		if err != nil {
			panic(err) // embedded in the program
		}
		headers["gpunetio/device/"+name] = string(text)
	}
	headers["gn.h"] = headers["gpunetio/device/gn.h"]
	return headers
}
