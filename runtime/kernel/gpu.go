package kernel

import (
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// GPUAt returns the number of the GPU at a PCI address in the form printed by `inspect` and nvidia-smi: "0000:8a:00.0", "8A:00.0". It opens the
// driver.
func GPUAt(address string) (int, error) {
	if !spec.IsPCIAddress(address) {
		return 0, fmt.Errorf("%q is not a PCI address such as 8A:00.0", address)
	}
	_, gpus, err := native.GPUs()
	if err != nil {
		return 0, fmt.Errorf("GPU %s: %w", address, err)
	}
	at := len(address) - len("8a:00.0")
	want := ":" + strings.ToLower(address[at:])
	if at > 0 { // the driver's domain has four digits, that of nvidia-smi eight
		domain := strings.ToLower(strings.TrimLeft(address[:at-1], "0"))
		want = fmt.Sprintf("%04s%s", domain, want)
	}
	var there []string
	for _, g := range gpus {
		if strings.HasSuffix(g.Bus, want) {
			return g.Number, nil
		}
		there = append(there, g.Bus)
	}
	return 0, fmt.Errorf("no GPU is at %s: this host has %s", address, strings.Join(there, ", "))
}
