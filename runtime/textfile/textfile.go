// Package textfile reads files that people write: scripts, kernels, formats, summaries and manifests. It may import the standard library.
package textfile

import (
	"fmt"
	"io"
	"os"
)

// Longest is how many bytes of a file are read into memory at most.
const Longest = 256 << 20

// Read reads a file or pipe whole. A longer one than Longest, as a device without an end is, is an error.
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
