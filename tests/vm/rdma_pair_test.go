package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// verbsProgram is a C program on libibverbs alone.
func verbsProgram(t *testing.T, source string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-o", program, source, "-libverbs").CombinedOutput(); err != nil {
		require.Lack(t, "rdma", err.Error()+": "+string(out))
	}
	return program
}

// TestRDMARefused has what is wrong refused by name before anything is posted, and datagrams over queue pairs that are connected by
// hand, by the GID of the configuration's gid_index.
func TestRDMARefused(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	output := rdmaMust(t, k, root(t), nil, `
		`+build(t, "./cmd/daqiri-run")+` --summary full tests/vm/rdma/refused.lua 2>&1`)
	wantText(t, strings.ReplaceAll(output, "\t", " "), "refused twice false", "roce://10.9.0.1:4810 is the address of interface one already",
		"refused gid nil INVALID_PARAMETER interface none: gid_index 200: port 1 of device rxe0 has no such GID", "datagrams fd09::1 fd09::2 [fd09::2]:4791", "came datagram",
		"refused above the MTU nil INVALID_PARAMETER", "cannot be longer than the MTU", "refused datagrams are messages nil INVALID_PARAMETER", "messages only", "came 4096 2",
		"refused shared nil INVALID_PARAMETER", "whose packets others have", "refused private nil INVALID_PARAMETER", "the limit is 48", "given 5", "dropped peer.tx.0.too_long: 1", "every packet is accounted for")
}

// TestRDMAByHand connects queue pairs without connection manager, reliable and unreliable: with a program on libibverbs alone,
// which reports what it got and what it sent, and with each other. An end that nothing can reach, or that sends too little, is refused.
func TestRDMAByHand(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	d, stranger := build(t, "./cmd/daqiri-run"), verbsProgram(t, "rdma/pair.c")
	output := rdmaMust(t, k, root(t), nil, `
		for transport in rc uc; do
			rm -f /dev/shm/pair-*
			`+stranger+` rxe1 10.9.0.2 $transport /dev/shm/pair-theirs /dev/shm/pair-ours 2>&1 &
			`+d+` tests/vm/rdma/pair.lua --transport $(echo $transport | tr a-z A-Z) 2>&1 || exit
			wait
		done`)
	output = strings.ReplaceAll(output, "\t", " ")
	for n, text := range strings.SplitAfter(output, "every packet is accounted for")[:2] {
		wantText(t, text, "made false true ::ffff:10.9.0.1 4096", "refused nil INVALID_PARAMETER", "its address is missing", "not a lid", "refused nil", "10.9.0.77",
			"open true 10.9.0.2:4791", "here hello", "refused nil INVALID_PARAMETER", "it has a peer, or has ended", "every packet is accounted for")
		theirs := regexp.MustCompile(`imm 77 sum (\d+)\nwrites (\d+) sends (\d+)`).FindStringSubmatch(text)
		if theirs == nil {
			t.Fatalf("boot %d: no sums in\n%s", n, text)
		}
		inError := []string{"in error remote I/O error\n", "in error nil\n"}[n]
		for _, want := range []string{inError, "written " + theirs[1] + "\n", "came 1000 " + theirs[3] + " " + theirs[2] + " true\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
}
