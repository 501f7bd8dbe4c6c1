package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/host/machine"
)

// cores parses a list of cores.
func cores(text string) []int { return machine.List(text) }

// listText formats 0, 1, 2, 5 as "0-2,5".
func listText(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		part := strconv.Itoa(list[i])
		if k > i {
			part += "-" + strconv.Itoa(list[k])
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, ",")
}

// without returns the elements of list that are not in other.
func without(list, other []int) (left []int) {
	for _, n := range list {
		if !slices.Contains(other, n) {
			left = append(left, n)
		}
	}
	return left
}

// exampleCores suggests cores to isolate: all but the first, or the last of two.
func exampleCores(online []int) string {
	if len(online) < 2 {
		return "1"
	}
	return listText(online[max(1, len(online)/4):])
}

// kernelLine describes how to add a kernel command line parameter, as no single command works on all systems.
func kernelLine(parameter string) string {
	return "add " + parameter + " to GRUB_CMDLINE_LINUX in /etc/default/grub, then: sudo update-grub && sudo reboot"
}

// counts formats {a: 2, b: 1} as "a on 2, b on 1".
func counts(n map[string]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s on %d", key, n[key]))
	}
	return strings.Join(parts, ", ")
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// size formats bytes with a binary prefix.
func size(n int) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, k := float64(n), 0
	for v >= 1024 && k < len(units)-1 {
		v, k = v/1024, k+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + units[k]
}
