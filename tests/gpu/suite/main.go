// Command suite is one file that shows on any machine with a GPU what the project does there: `make gpu-suite` packs the
// program, tests and kernels' check into it. It reports how far it is on stderr and prints JSON at its end.
//
// It may import the standard library.
package main

import (
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// packed has what `make gpu-suite` put there: programs, compressed, and what scripts have to print.
//
//go:embed all:packed
var packed embed.FS

// limit is how long all of it may take, and stepLimit each step.
const limit, stepLimit = 10 * time.Minute, 4 * time.Minute

// Step is the outcome of one step; Result: passed, failed or skipped.
type Step struct {
	Name    string          `json:"name"`
	Result  string          `json:"result"`
	Seconds float64         `json:"seconds"`
	Output  string          `json:"output,omitempty"` // its end, unless it passed
	Figures json.RawMessage `json:"figures,omitempty"`
}

// Report is the outcome of all.
type Report struct {
	Schema  int     `json:"schema"`
	Seconds float64 `json:"seconds"`
	Steps   []Step  `json:"steps"`
}

// suite runs steps in a folder into which everything is unpacked.
type suite struct {
	dir    string
	begun  time.Time
	report Report
}

func main() {
	short := flag.Bool("short", false, "show that everything runs: no steady figures")
	keep := flag.Bool("keep", false, "leave the unpacked programs where they are, and say where")
	flag.Parse()
	code, err := run(*short, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-suite:", err)
		code = 2
	}
	os.Exit(code)
}

func run(short, keep bool) (int, error) {
	dir, err := os.MkdirTemp("", "gpu-suite-")
	if err != nil {
		return 0, err
	}
	if keep {
		fmt.Fprintln(os.Stderr, "unpacked into", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	s := &suite{dir: dir, begun: time.Now(), report: Report{Schema: 1}}
	if err := s.unpack(); err != nil {
		return 0, err
	}
	s.all(short)
	s.report.Seconds = time.Since(s.begun).Seconds()
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	for _, step := range s.report.Steps {
		if step.Result == "failed" {
			return 1, out.Encode(s.report)
		}
	}
	return 0, out.Encode(s.report)
}

// unpack writes what is packed into the folder.
func (s *suite) unpack() error {
	files, err := packed.ReadDir("packed")
	if err != nil {
		return err
	}
	if len(files) < 2 {
		return fmt.Errorf("nothing is packed: make gpu-suite builds build/gpu-suite")
	}
	for _, f := range files {
		if err := s.unpackOne(f.Name()); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

func (s *suite) unpackOne(name string) error {
	in, err := packed.Open(path.Join("packed", name))
	if err != nil {
		return err
	}
	defer in.Close()
	var from io.Reader = in
	to, isProgram := strings.CutSuffix(name, ".gz")
	if isProgram {
		if from, err = gzip.NewReader(in); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(filepath.Join(s.dir, to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// all runs the steps, the quick ones first: what a machine is, what a GPU computes, then how fast.
func (s *suite) all(short bool) {
	every, seconds, cases := "3", "0", []string{"gpu_reorder", "gpu_convert", "gpu_convert_12", "gpu_gather", "gpu_write", "gpu_pipeline"}
	if short {
		every, seconds, cases = "37", "0.1", cases[:1]
	}
	s.step("machine", "./daqiri-run", "doctor", "--json")
	s.step("kernels", "./check", every)
	s.step("reorder model", "./session.test", "-test.run", "TestReorderModel", "-test.timeout", "4m")
	s.script("gpu_reorder", "virtual")
	s.script("gpu_reorder", "real")
	s.script("gpu_kernel", "virtual")
	for _, name := range cases {
		s.step("bench "+name, "./daqiri-run", "bench", name, "--json", "--seconds", seconds)
	}
	for _, name := range []string{"gemm", "fft"} {
		if !short {
			s.step("workload "+name, "./daqiri-run", "bench", "gpu_pipeline", "--workload", name, "--json", "--seconds", seconds)
		}
	}
}

// script runs one of ours on the GPU. On the virtual clock it prints what it has to; on the real one it compares itself.
func (s *suite) script(name, clock string) {
	want, err := os.ReadFile(filepath.Join(s.dir, name+".golden"))
	if err != nil {
		return // this version has no such script
	}
	step, out := s.start(name+" "+clock, "./daqiri-run", "run", "--summary", "none", name, "--memory", "gpu", "--clock", clock)
	if step.Result == "passed" && clock == "virtual" && out != string(want) {
		step.Result, step.Output = "failed", fmt.Sprintf("printed %q, not %q", out, want)
	}
	s.end(step)
}

func (s *suite) step(name string, argv ...string) {
	step, out := s.start(name, argv...)
	if json.Valid([]byte(out)) {
		step.Figures = json.RawMessage(out)
		step.judge()
	}
	s.end(step)
}

// judge reads a report of bench: a case that was skipped is a step that was.
func (s *Step) judge() {
	var report struct {
		Cases []struct{ Skipped, Error string }
	}
	if json.Unmarshal(s.Figures, &report) != nil || len(report.Cases) == 0 {
		return
	}
	if why := report.Cases[0].Skipped; why != "" && s.Result == "passed" {
		s.Result, s.Output = "skipped", why
	}
}

// start runs a program to its end.
func (s *suite) start(name string, argv ...string) (Step, string) {
	fmt.Fprintf(os.Stderr, "%-24s ", name)
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), min(stepLimit, limit-time.Since(s.begun)))
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"DAQIRI_CUDA=libcuda.so.1"}, os.Environ()...) // tests have a stand-in where none is named
	cmd.WaitDelay = time.Second
	var out, output strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &output
	err := cmd.Run()
	step := Step{Name: name, Result: "passed", Seconds: time.Since(began).Seconds()}
	switch code := cmd.ProcessState.ExitCode(); {
	case code == 77:
		step.Result, step.Output = "skipped", tail(out.String()+output.String())
	case err != nil && strings.Contains(output.String(), "needs NVRTC"):
		step.Result, step.Output = "skipped", tail(output.String())
	case name == "machine": // what it finds to mend is not a failure here
	case err != nil:
		step.Result, step.Output = "failed", tail(fmt.Sprintf("%s%s%v", out.String(), output.String(), err))
	}
	return step, out.String()
}

func (s *suite) end(step Step) {
	fmt.Fprintf(os.Stderr, "%s in %.1f s\n", step.Result, step.Seconds)
	s.report.Steps = append(s.report.Steps, step)
}

// tail is the end of what a program reported.
func tail(text string) string { return text[max(0, len(text)-4000):] }
