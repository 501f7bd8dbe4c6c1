package bindings

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	fuzzCalls   = 4000 // of a program
	fuzzBatch   = 12   // programs of a process
	fuzzSeconds = 5    // unless DAQIRI_FUZZ_SECONDS says otherwise
	fuzzFrom    = "DAQIRI_FUZZ_FROM"
)

// TestAPIFuzz makes random calls with random objects (testdata/api/fuzz.lua) for DAQIRI_FUZZ_SECONDS, from seed
// DAQIRI_FUZZ_SEED on. Programs run in processes of their own, so that one that dies is known by its seed:
// DAQIRI_FUZZ_FROM=SEED repeats the batch that begins with it, -run TestAPIFuzz/SEED one program of it. With the address sanitizer (go test -asan) it sees what is read that was freed.
func TestAPIFuzz(t *testing.T) {
	if from := os.Getenv(fuzzFrom); from != "" {
		fuzzPrograms(t, number(t, from))
		return
	}
	seconds, seed := fuzzSeconds, 1
	if v := os.Getenv("DAQIRI_FUZZ_SECONDS"); v != "" {
		seconds = number(t, v)
	}
	if v := os.Getenv("DAQIRI_FUZZ_SEED"); v != "" {
		seed = number(t, v)
	}
	calls := 0
	for end := time.Now().Add(time.Duration(seconds) * time.Second); ; seed += fuzzBatch {
		n, text, err := fuzzProcess(seed)
		if calls += n; err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if time.Now().After(end) {
			break
		}
	}
	if least := fuzzBatch * fuzzCalls / 2; calls < least {
		t.Errorf("%d calls, fewer than %d", calls, least)
	}
	t.Logf("%d calls, up to seed %d", calls, seed+fuzzBatch-1)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fuzzProcess runs a batch of programs; how many calls they made, and what they said.
func fuzzProcess(seed int) (calls int, text string, err error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAPIFuzz$", "-test.v", "-test.parallel=8")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", fuzzFrom, seed))
	out, err := cmd.CombinedOutput()
	for in := bufio.NewScanner(strings.NewReader(string(out))); in.Scan(); {
		var n int
		if _, err := fmt.Sscanf(in.Text(), "calls %d", &n); err == nil {
			calls += n
		}
	}
	return calls, string(out), err
}

// fuzzPrograms runs a batch in this process, some at once: where time is real they mostly wait.
func fuzzPrograms(t *testing.T, from int) {
	source := readScript(t, "testdata/api/fuzz.lua")
	for seed := from; seed < from+fuzzBatch; seed++ {
		kind := worldKinds[seed%len(worldKinds)]
		t.Run(fmt.Sprintf("%d/%s", seed, kind), func(t *testing.T) {
			t.Parallel()
			o := onStand(t, "fuzz.lua", source, map[string]lua.LValue{"fuzz_seed": lua.LNumber(seed), "fuzz_kind": lua.LString(kind), "fuzz_calls": lua.LNumber(fuzzCalls)})
			if o.err != nil {
				t.Fatal(o.err)
			}
			fmt.Printf("\ncalls %s\n", lastLine(o.out))
			balanced(t, o)
		})
	}
}
