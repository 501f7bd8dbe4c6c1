package native

import (
	"io/fs"

	"github.com/daqiri/daqiri-run/native/gn"
)

// KernelHeaders are the headers that a kernel's source may include, by the names that it includes them by: "gn.h" and "doca_gpu.h",
// with those that they include ("gn/gn_ring.h").
func KernelHeaders() map[string]string {
	names, err := fs.Glob(gn.Headers, "*.h")
	if err != nil {
		panic(err) // the pattern is right
	}
	headers := map[string]string{}
	for _, name := range names {
		text, err := gn.Headers.ReadFile(name)
		if err != nil {
			panic(err) // it is in the program
		}
		headers["gn/"+name] = string(text)
		if name == "gn.h" || name == "doca_gpu.h" {
			headers[name] = string(text)
		}
	}
	return headers
}
