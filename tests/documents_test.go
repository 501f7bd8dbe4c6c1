package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// blocksOf are the blocks of code of a document in one language.
func blocksOf(text, language string) (blocks []string) {
	for {
		_, rest, ok := strings.Cut(text, "```"+language+"\n")
		if !ok {
			return blocks
		}
		block, after, _ := strings.Cut(rest, "```")
		blocks, text = append(blocks, block), after
	}
}

// documents run as they stand: each with the least number of blocks that it has, so that none is passed by.
var documents = []struct {
	name    string
	lua, sh int
}{{"docs/tour.md", 0, 5}, {"docs/cookbook.md", 5, 1}}

// TestDocumentBlocks runs every block of the tour and the cookbook as a reader would: commands in one folder in their order, each
// script in a file of its own. Files are in memory where that can be: what a document shows must not depend on a disk that others use.
func TestDocumentBlocks(t *testing.T) {
	program := built(t)
	for _, d := range documents {
		text := readFile(t, d.name)
		lua, sh := blocksOf(text, "lua"), blocksOf(text, "sh")
		if len(lua) < d.lua || len(sh) < d.sh {
			t.Errorf("%s has %d scripts and %d blocks of commands", d.name, len(lua), len(sh))
		}
		t.Run(d.name, func(t *testing.T) {
			dir := memoryDir(t)
			run := func(what string, args ...string) {
				t.Helper()
				if os.Getuid() == 0 { // where nobody else has the ports that the documents name
					args = append([]string{"unshare", "-n", "sh", "-c", `ip link set lo up && exec "$@"`, "-"}, args...)
				}
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+dir)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", what, err, out)
				}
			}
			for _, name := range []string{"forward.yaml"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(readFile(t, "scripts/"+name)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, block := range sh {
				run(block, "bash", "-euc", block)
			}
			for _, block := range lua {
				file := filepath.Join(dir, "block.lua")
				if err := os.WriteFile(file, []byte(block), 0o644); err != nil {
					t.Fatal(err)
				}
				run(block, program, "--summary", "none", file)
				run(block, program, "check", file)
			}
		})
	}
}

// memoryDir is a folder that lies in memory, where a gigabyte is free there, or else on a disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err != nil || free.Bavail*uint64(free.Bsize) < 1<<30 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "daqiri-run-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
