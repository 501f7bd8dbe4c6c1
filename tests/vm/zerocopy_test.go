package main

import (
	"bytes"
	"context"
	"testing"
)

// TestZeroCopy runs the contract suite over AF_XDP with zero-copy, which virtio-net has from Linux 6.13 on: a newer
// kernel than the distribution's.
func TestZeroCopy(t *testing.T) {
	need(t)
	if _, err := getKernel(cache, newer); err != nil {
		lack(t, "zero-copy", err.Error())
	}
	t.Setenv("DAQIRI_TEST_DEVICES", "eth0,eth1")
	var out, complaints bytes.Buffer
	m := machine{virtio: 2, memory: 1536, timeout: patience, stdout: &out, stderr: &complaints}
	code, err := start(context.Background(), &m, cache, newer, "../../runtime/session",
		[]string{"-test.run", "TestContract.*/zero-copy", "-test.parallel", "1", "-test.v"})
	if passed := count(out.String(), `    --- PASS: \w+/zero-copy/`); code != 0 || err != nil || passed < 20 {
		t.Errorf("exit code %d, %v, %d tests passed\n%s%s", code, err, passed, out.String(), complaints.String())
	}
}
