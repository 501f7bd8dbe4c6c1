package main

import (
	"strings"
	"testing"
)

// TestRDMAKernels has a client's kernel work on a server's memory, and the kernels of both exchange messages and immediate values; the memory at the end,
// what fetch_add found and the ledger say what was done, a wrong key ends as the operation's error. Then gn_put_bw at both scopes.
func TestRDMAKernels(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	d, dir := build(t, "./cmd/daqiri-run"), root(t)
	// Where the processor is emulated compilers take long: kernels are compiled here, and found there.
	compiled(t, d, dir, "tests/vm/rdma/gn.lua", "--compile")
	compiled(t, d, dir, "scripts/gpunetio/gn_put_bw.lua", "--messages", "1")
	output := rdmaMust(t, k, dir, nil, `
		`+d+` tests/vm/rdma/gn.lua 2>&1 || exit
		for scope in thread warp; do
			`+d+` scripts/gpunetio/gn_put_bw.lua --at 10.9.0.1 --from 10.9.0.2 --messages 200 --scope $scope 2>&1 || exit
		done`)
	const valid = "200 messages of 4096 bytes, 0 failed, 0 wrong\nValidation successful! Data received correctly from client.\n"
	wantText(t, strings.ReplaceAll(output, "\t", " "), "hint: conn = c", `its peer lends no "other"; it lends theirs`, "ops 0 0 0 0 0 0 0 fetched 7 9223372036854775815 wrong 0 nil\n",
		"there ABCDEFGH 0 8 128\n", "one-sided 7 4032 timed true true true\n", "messages 0 10\n", "immediates 40 0 0 1 an immediate value that the queue's engine does not carry\n", "wrong key 0 5 the engine could not do it permission denied 1\n",
		"every packet is accounted for", valid, "every packet is accounted for", valid, "every packet is accounted for")
}
