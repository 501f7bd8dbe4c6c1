package kernel

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

var pciAddress = regexp.MustCompile(`^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// GPUAt is the number of the GPU at a PCI address, as `inspect` and nvidia-smi print it: "0000:8a:00.0", "8A:00.0". It opens
// the driver.
func GPUAt(address string) (int, error) {
	want := strings.ToLower(address)
	m := pciAddress.FindStringSubmatch(want)
	if m == nil {
		return 0, fmt.Errorf("%q is no PCI address such as 8A:00.0", address)
	}
	_, gpus, err := native.GPUs()
	if err != nil {
		return 0, fmt.Errorf("GPU %s: %w", address, err)
	}
	if m[1] != "" { // the driver's domain has four digits, nvidia-smi's eight
		domain := strings.TrimLeft(strings.TrimSuffix(m[1], ":"), "0")
		want = fmt.Sprintf("%04s%s", domain, want[len(m[1])-1:])
	} else {
		want = ":" + want
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
