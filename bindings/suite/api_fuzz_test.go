package suite

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
	fuzzCalls   = 4000 // calls per program
	fuzzBatch   = 12   // programs per process
	fuzzSeconds = 5    // default of DAQIRI_FUZZ_SECONDS
	fuzzFrom    = "DAQIRI_FUZZ_FROM"
)

// TestAPIFuzz makes random calls with random objects (testdata/api/fuzz.lua) for DAQIRI_FUZZ_SECONDS, starting with seed DAQIRI_FUZZ_SEED.
// Batches of programs run in child processes, so that a crash is attributed to its seed: DAQIRI_FUZZ_FROM=SEED repeats the batch that begins with
// it, -run TestAPIFuzz/SEED runs one program of it. With the address sanitizer (go test -asan) it also detects reads of freed memory.
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

// fuzzProcess runs a batch of programs in a child process; it returns the number of calls made and the output.
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

// fuzzPrograms runs a batch in this process, several programs in parallel: on the real clock they mostly wait.
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
