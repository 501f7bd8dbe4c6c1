package golden

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// exitSkip is the exit code of a script that can't be tested on this machine.
const exitSkip = 77

// problem is one difference between a test and its golden files.
type problem struct{ title, body string }

// runCase runs one test and returns its result.
func runCase(ctx context.Context, opts Options, c testCase) Test {
	test := Test{Name: c.name}
	want, err := c.load()
	if err != nil {
		return test.fail(err)
	}
	box, err := newSandbox()
	if err != nil {
		return test.fail(err)
	}
	defer os.RemoveAll(box.root)

	got := execute(ctx, opts, c, want, box)
	test.Duration, test.Stderr = got.took, got.stderr
	switch {
	case got.broken != nil:
		test.Detail = got.stdoutTail()
		return test.fail(got.broken)
	case got.exit == exitSkip:
		test.Status, test.Reason = Skipped, got.skipReason()
		return test
	case opts.Update && got.exit != 0 && got.exit != want.exit && !opts.Failing:
		test.Detail = got.stdoutTail()
		return test.fail(fmt.Errorf("it ended with exit code %d, and nothing was written; hint: mend it, or --failing expects that", got.exit))
	case opts.Update:
		changed, err := update(c, want, got, box)
		if err != nil {
			return test.fail(err)
		}
		if len(changed) > 0 {
			test.Reason = "wrote " + strings.Join(changed, ", ")
		}
		if got.exit != 0 {
			test.Reason = strings.TrimPrefix(fmt.Sprintf("%s; EXPECTS EXIT CODE %d", test.Reason, got.exit), "; ")
		}
		return test
	}
	return test.judge(compare(c, want, got, box))
}

func (t Test) fail(err error) Test {
	t.Status, t.Reason = Failed, err.Error()
	return t
}

func (t Test) judge(problems []problem) Test {
	var titles []string
	var detail strings.Builder
	for _, p := range problems {
		titles = append(titles, p.title)
		detail.WriteString(p.body)
	}
	if len(problems) > 0 {
		t.Status, t.Reason, t.Detail = Failed, strings.Join(titles, "; "), detail.String()
	}
	return t
}

// compare lists all differences, so that one run shows everything.
func compare(c testCase, want expectation, got outcome, box sandbox) []problem {
	var problems []problem
	if got.exit != want.exit {
		problems = append(problems, problem{title: fmt.Sprintf("exit code %d, want %d", got.exit, want.exit)})
	}
	if body, err := compareStdout(c.base+".golden", want.stdout, got.stdout); err != nil {
		problems = append(problems, problem{title: err.Error()})
	} else if body != "" {
		problems = append(problems, problem{"stdout differs", body})
	}
	problems = append(problems, compareFiles(c, want, box)...)
	if want.counters != nil {
		problems = append(problems, compareCounters(c, want, box)...)
	}
	return problems
}

// stdoutTail returns the end of the output of a script that did not exit by itself.
func (o outcome) stdoutTail() string {
	const keep = 20
	if o.stdout == "" {
		return ""
	}
	all := lines(o.stdout)
	head := "stdout until then:\n"
	if len(all) > keep {
		head = fmt.Sprintf("last %d of %d lines of stdout:\n", keep, len(all))
		all = all[len(all)-keep:]
	}
	return head + indent(strings.Join(all, "\n"), "  ")
}

// skipReason returns the last line printed by the script, or else the first line on stderr.
func (o outcome) skipReason() string {
	if text := strings.TrimSpace(o.stdout); text != "" {
		return text[strings.LastIndexByte(text, '\n')+1:]
	}
	first, _, _ := strings.Cut(strings.TrimSpace(o.stderr), "\n")
	return first
}
