package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
)

// TestMain lets the test's program be a sender, as the rig's is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == peerCommand {
		os.Exit(peer(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// brief runs the rig for a few seconds and returns what it found, and reported.
func brief(t *testing.T, change func(*options)) (int, string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "daqiri-run")
	build := exec.Command("go", "build", "-o", program, "./cmd/daqiri-run")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var out bytes.Buffer
	o := options{program: program, scripts: ".", dir: t.TempDir(), length: 8 * time.Second, seed: 1, brief: true, out: &out}
	change(&o)
	found, err := soak(o)
	if err != nil {
		t.Fatal(err)
	}
	return found, out.String()
}

func TestSoakBriefly(t *testing.T) {
	found, output := brief(t, func(*options) {})
	if found != 0 {
		t.Errorf("the rig found %d faults:\n%s", found, output)
	}
	if strings.Contains(output, "no file system of its own") {
		t.Log("without the faults of disks: no loop device can be mounted here")
		if require.Named("loopmount") {
			t.Errorf("DAQIRI_REQUIRE names loopmount:\n%s", output)
		}
	}
}

// TestSoakAsksForTheClock keeps the rig from stepping the clock of a machine that others use.
func TestSoakAsksForTheClock(t *testing.T) {
	_, err := soak(options{faults: []string{stepsClock}})
	if err == nil || !strings.Contains(err.Error(), "CLOCK=1") {
		t.Errorf("got %v", err)
	}
	r := &rig{}
	for k := range loads {
		for seed := range uint64(20) {
			for _, f := range r.deck(&loads[k], rand.New(rand.NewPCG(seed, 1))) {
				if f.name == stepsClock {
					t.Fatalf("load %s would step the clock unasked", loads[k].name)
				}
			}
		}
	}
}

// TestSoakNoticesLoss shows that the rig would notice: one packet in five thousand goes nowhere, and no other
// counter knows of it.
func TestSoakNoticesLoss(t *testing.T) {
	found, output := brief(t, func(o *options) { o.lossy, o.faults, o.length = 5000, []string{"stop-cont"}, 3*time.Second })
	if found != 1 || !strings.Contains(output, "are nowhere") {
		t.Errorf("the rig found %d faults in a lossy run:\n%s", found, output)
	}
}
