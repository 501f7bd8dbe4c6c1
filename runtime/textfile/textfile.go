// Package textfile reads text files: scripts, kernels, formats, summaries and manifests. It may import the standard library.
package textfile

import (
	"fmt"
	"io"
	"os"
)

// Longest is the maximum size of a file, in bytes.
const Longest = 256 << 20

// Read returns the content of a file or pipe. It returns an error if the content exceeds Longest, as that of an endless device does.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, Longest+1))
	if err == nil && len(data) > Longest {
		err = fmt.Errorf("%s: it is longer than %d MiB", path, Longest>>20)
	}
	return data, err
}
