package main

import (
	"context"
	_ "embed"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

//go:embed rdma.sh
var rdmaScript string

// rdmaModules are those of soft-RoCE. Without the checksums' a device can't be made.
var rdmaModules = []string{"crc32_generic", "crc32c_generic", "rdma_rxe", "rdma_ucm", "ib_uverbs", "veth"}

// needRDMA skips t where the machine, or a command that comes with the libraries, is missing.
func needRDMA(t *testing.T) kernel {
	t.Helper()
	k := need(t, "ip")
	for _, name := range []string{"rdma", "rping", "ib_send_bw"} {
		if _, err := tool(name); err != nil {
			require.Lack(t, "rdma", err.Error()+": `make deps` installs what soft-RoCE needs")
		}
	}
	return k
}

// tests builds the tests of a package; its program and the folder that they expect.
func tests(t *testing.T, pkg string) (program, dir string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "go.test")
	dir, err := buildTest(context.Background(), pkg, program)
	if err != nil {
		t.Fatal(err)
	}
	return program, dir
}

// TestEngineRDMA runs the contract suite over reliable and unreliable connections and datagrams of soft-RoCE.
func TestEngineRDMA(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	program, dir := tests(t, "../../runtime/session")
	m := machine{modules: rdmaModules, memory: 1536, dir: dir,
		env: []string{"DAQIRI_TEST_RDMA=10.9.0.1,10.9.0.2"}}
	said := must(t, k, m, rdmaScript+"\n"+quote(program)+" -test.run 'TestContract.*/rdma' -test.parallel 1 -test.v 2>&1")
	if passed := count(said, `    --- PASS: \w+/rdma-(rc|uc|ud)/`); passed < 60 {
		t.Errorf("%d tests passed\n%s", passed, said)
	}
}
