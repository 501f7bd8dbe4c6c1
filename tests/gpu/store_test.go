package gpu_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// intoGPU has a run of blocksScript put its batches into the memory of the stand-in, whose errors these are. cufile: those of
// the stand-in for cuFile; "off": there is none.
func intoGPU(t *testing.T, cmd *exec.Cmd, faults, cufile string) {
	t.Helper()
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = append(cmd.Args, "--region", "device")
	cmd.Env = append(os.Environ(), "DAQIRI_CUDA="+lib, "DAQIRI_FAKE_CUDA="+faults, "DAQIRI_FAKE_CUFILE="+cufile, "DAQIRI_CUFILE="+lib)
	if cufile == "off" {
		cmd.Env = append(cmd.Env, "DAQIRI_CUFILE=")
	}
}

// figures runs a command to its good end; what it counted, and what it reported.
func figures(t *testing.T, cmd *exec.Cmd) (f map[string]int, output string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Args = append(cmd.Args[:1:1], append([]string{"--summary", "full"}, cmd.Args[1:]...)...)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil || !strings.Contains(stderr.String(), "every packet is accounted for") {
		t.Fatalf("%v: %s\n%s", err, out, stderr.String())
	}
	return f, stderr.String()
}

// TestGPUBlocks writes batches that lie in a GPU's memory as blocks, and has a reader that knows the format alone compare
// every bit and byte, and the manifest's checksums, with what came in.
func TestGPUBlocks(t *testing.T) {
	harness.Need(t, "scapy") // for python3
	for _, c := range []struct{ name, faults, cufile, clock, pps, way string }{
		{"virtual clock", "", "off", "virtual", "1e6", "note: writer disk: from GPU 0 through pinned memory: cuFile is turned off (DAQIRI_CUFILE)"},
		{"threads and a slow GPU", "delay_us=200", "off", "real", "50000", "from GPU 0 through pinned memory"},
		{"by cuFile", "", "nvfs=1", "virtual", "1e6", "note: writer disk: from GPU 0 by cuFile, nvidia-fs 2.17"},
		{"by cuFile, threads and a slow GPU", "delay_us=200", "short=1", "real", "50000", "by cuFile, which copies through the host where nvidia-fs is not loaded"},
		{"cuFile refuses the file system", "", "refuse=1", "virtual", "1e6", "from the GPU through pinned memory: cuFileHandleRegister: error 5008 (this file system is not supported)"},
		{"cuFile doesn't start", "", "refuse=3", "virtual", "1e6", "from GPU 0 through pinned memory: cuFileDriverOpen: error 5001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := harness.BlocksRun(t, harness.Built(t), dir, "--options", `{"dirs": ["a", "b"], "rotate": "1MB"}`, "--pcap", "seen", "--clock", c.clock, "--pps", c.pps,
				"--policy", "wait")
			for _, d := range []string{"a", "b"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			intoGPU(t, cmd, c.faults, c.cufile)
			f, output := figures(t, cmd)
			if !strings.Contains(output, c.way) {
				t.Errorf("no %q:\n%s", c.way, output)
			}
			files := harness.CheckBlocksManifest(t, dir, "a/disk.manifest.json")
			blocks, packets, holes := harness.ReadBlocks(t, dir, "seen.pcap", files)
			full := blocks == 400 && holes >= 100 || c.clock == "real" && holes > 0 // real time may be too short for all
			if !full || blocks != f["written"] || f["lost"] != 0 {
				t.Errorf("%d blocks, %d packets, %d holes: %v", blocks, packets, holes, f)
			}
			readWithScript(t, filepath.Join(dir, files[0]))
		})
	}
}

// readWithScript has scripts/read_blocks.py read a file of blocksScript's blocks.
func readWithScript(t *testing.T, file string) {
	t.Helper()
	python, err := harness.PythonWith("numpy")
	if err != nil {
		require.Lack(t, "numpy", err.Error())
	}
	out, err := exec.Command(python, filepath.Join(tree.Root, "scripts/read_blocks.py"), file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), ", 50, 600) batches [") {
		t.Errorf("scripts/read_blocks.py: %v: %.300s", err, out)
	}
}

// TestGPUObjects uploads batches that lie in a GPU's memory.
func TestGPUObjects(t *testing.T) {
	harness.Need(t, "scapy")
	s, dir := harness.NewS3Server(t), t.TempDir()
	cmd := harness.BlocksRun(t, harness.Built(t), dir, "--endpoint", "http://"+s.Address, "--options", `{"packets_per_object": 60}`, "--pcap", "seen")
	intoGPU(t, cmd, "delay_us=50", "off")
	f, output := figures(t, cmd)
	if !strings.Contains(output, "disk uploaded 400 packets") {
		t.Error(output)
	}
	var files []string
	for i, o := range s.Objects() {
		files = append(files, fmt.Sprintf("%06d.dqb", i))
		if err := os.WriteFile(filepath.Join(dir, files[i]), o, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks, packets, holes := harness.ReadBlocks(t, dir, "seen.pcap", files)
	if len(files) != 7 || blocks != 400 || blocks != f["written"] || holes != f["missing"] || holes < 100 {
		t.Errorf("%d objects, %d blocks, %d packets, %d holes: %v", len(files), blocks, packets, holes, f)
	}
}

// TestGPUWriterFaults checks that a GPU that is lost, or never ends, under a writer is named, and that every packet is accounted for. The
// 60th launch may be one of the reorder stage or one of the writer.
func TestGPUWriterFaults(t *testing.T) {
	for _, c := range []struct {
		name, faults, cufile string
		exit                 int
		want                 string
	}{
		{"a kernel traps", "trap=60", "off", 4, ": GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"},
		{"a launch fails", "fail=60", "off", 4, ": GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"},
		{"a kernel never ends", "hang=60", "off", 4, " did not end: for 5 s its device took nothing"},
		{"cuFile's write fails", "", "fail=9", 4, "stage disk: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"},
		{"no memory for lists", "mib=6", "off", 1, "writer disk: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := harness.BlocksRun(t, harness.Built(t), t.TempDir(), "--clock", "real", "--pps", "20000", "--options", `{"dir": "."}`, "--policy", "wait")
			intoGPU(t, cmd, c.faults, c.cufile)
			out, _ := cmd.CombinedOutput()
			balanced := strings.Contains(string(out), "every packet is accounted for") || strings.Contains(c.faults, "mib")
			if code := cmd.ProcessState.ExitCode(); code != c.exit || !strings.Contains(string(out), c.want) || !balanced {
				t.Errorf("exit code %d, want %d, %q and a balanced account:\n%s", code, c.exit, c.want, out)
			}
		})
	}
}
