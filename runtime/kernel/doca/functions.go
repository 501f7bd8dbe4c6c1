package doca

import (
	_ "embed"
	"strings"
)

//go:embed functions.txt
var functionsText string

// Function is a device function of DOCA, or several with the same state.
type Function struct {
	Family, Header string
	State          string // Here, Differs, Nothing, Impossible
	Names          []string
	Note           string
}

// States of functions.
const (
	Here       = "here"
	Differs    = "differs"
	Nothing    = "nothing"    // accepted without effect
	Impossible = "impossible" // a call does not compile
)

var prefixes = strings.NewReplacer("~e_", "doca_gpu_dev_eth_", "~v_", "doca_gpu_dev_verbs_", "~r_", "doca_gpu_dev_rdma_")

// Functions returns the device functions of DOCA by family.
func Functions() (all []Function) {
	var family, header string
	for line := range strings.Lines(functionsText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		state, rest, _ := strings.Cut(line, " ")
		if state == "family" {
			family, header, _ = strings.Cut(rest, ": ")
			continue
		}
		names, note, _ := strings.Cut(prefixes.Replace(rest), ": ")
		all = append(all, Function{family, header, state, strings.Fields(names), note})
	}
	return all
}
