package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

//go:embed doctor.sh
var doctorScript string

// TestDoctor makes a machine wrong: doctor finds each error by the name of its row, gives a command, and once that has run the row
// passes. What belongs to a network alone is tested in namespaces, on the host (tests/doctor_test.go).
func TestDoctor(t *testing.T) {
	t.Parallel()
	k := need(t, "setpriv", "ethtool")
	program := build(t, "./cmd/daqiri-run")
	script := filepath.Join(t.TempDir(), "doctor.sh")
	if err := os.WriteFile(script, []byte(doctorScript), 0o644); err != nil {
		t.Fatal(err)
	}
	output := must(t, k, machine{virtio: 2}, "exec bash "+quote(script)+" "+quote(program))
	type finding struct{ Row, Of, State, Found, Command string }
	var looks struct{ Before, After []finding }
	if err := json.Unmarshal([]byte(output), &looks); err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	state := func(list []finding, row, want string) (of []finding) {
		for _, f := range list {
			if f.Row == row && f.State == want {
				of = append(of, f)
			}
		}
		return of
	}
	for _, row := range []string{"link", "MTU", "joined packets", "reverse path", "group limit", "multicast route", "addresses", "socket buffers",
		"huge pages", "clock source", "control group", "locked memory", "open files"} {
		wrong := state(looks.Before, row, "fail")
		if len(wrong) == 0 || wrong[0].Command == "" || wrong[0].Found == "" {
			t.Errorf("row %s does not fail: %+v", row, looks.Before)
			continue
		}
		t.Logf("%s: %s: %s", row, wrong[0].Found, wrong[0].Command)
		if still := state(looks.After, row, "fail"); len(still) != 0 || len(state(looks.After, row, "pass")) == 0 {
			t.Errorf("row %s after its command: %+v", row, append(still, state(looks.After, row, "not here")...))
		}
	}
}
