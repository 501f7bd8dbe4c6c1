package files

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// zarrScript sends packets 80 to 479, and from 880 on, with four numbers each, some of which the wire loses, and writes them in order.
const zarrScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ clock = "virtual", loss = 0.05, options = "{}", count = 400, seconds = 0.1 }
local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = args.clock, loss = args.loss, seed = 5 } } })
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local blocks = s:reorder{ name = "blocks", memory_region = "packets", packets_per_batch = 8, timeout_us = 1000, fill = "zero",
  sequence_number = { bit_offset = 336, bit_width = 32 }, payload_byte_offset = 46, slot_bytes = 8,
  data_types = { input_type = "int16", output_type = "int16", endianness = "network" } }
local seq = daqiri.format{ seq = { at = "payload", bit_offset = 0, bit_width = 32 }, a = { at = "payload", bit_offset = 32, bit_width = 16 } }
local o = daqiri.from_json(args.options)
o.name, o.policy, o.header = "t", "wait", { antenna = 3 }
s:pipe(rx, blocks, s:write_zarr(o))
tx:pace{ pps = 1e5 }
local function send(from, count)
  return tx:transmit{ count = count, template = tx:template{ format = seq, payload = ("\0"):rep(6) .. "\1\0\255\255\0\2",
    vary = { seq = { start = from }, a = { start = from } } } }
end
send(80, 400)
s:after("20ms", function() send(880, args.count) end)
s:run{ seconds = args.seconds }
`

// zarrReader compares every element of an array, as zarrita reads it, with what was sent. Missing packets are zeros, which the attributes list.
const zarrReader = `
import * as zarr from "zarrita";
import FileSystemStore from "@zarrita/storage/fs";
const fail = (...why) => { console.error(...why); process.exit(1); };
const a = await zarr.open(new FileSystemStore(process.argv[1]), { kind: "array" });
const at = a.attrs, blocks = a.shape[0], want = process.argv[2] === "complex" ? [blocks, 8, 2, 2] : [blocks, 8, 4];
if (String(a.shape) !== String(want) || a.dtype !== "int16" || at.first_ordinal !== 10 || at.header.antenna !== 3) fail(a.shape, a.dtype, at);
if (want.length === 4 && (at.sample_type !== "ci16le" || at.sample_rate !== 250e6 || at.center_frequency !== 1.4e9)) fail(at);
const gone = new Set(), cut = new Map(at.incomplete_blocks);
for (const [first, n] of at.missing_blocks) for (let i = 0; i < n; i++) gone.add(first + i);
const v = (await zarr.get(a)).data;
let lost = 0;
for (let b = 0; b < blocks; b++) {
  let zeros = 0;
  for (let slot = 0; slot < 8; slot++) {
    const got = Array.from(v.subarray((b * 8 + slot) * 4, (b * 8 + slot) * 4 + 4)), seq = (at.first_ordinal + b) * 8 + slot;
    if (got.every((x) => x === 0)) zeros++;
    else if (String(got) !== String([(seq << 16) >> 16, 256, -1, 2])) fail("block", b, "slot", slot, got);
  }
  if (zeros !== (gone.has(b) ? 8 : (cut.get(b) ?? 0))) fail("block", b, "has", zeros, "zeros", at);
  if (zeros < 8) lost += zeros;
}
console.log("right", blocks, gone.size, lost);
`

// readZarr has zarrita read the array of a folder, and returns its blocks, missing blocks and other missing packets.
func readZarr(t *testing.T, dir, kind string) (blocks, gone, lost int) {
	t.Helper()
	harness.Need(t, "zarrita")
	read := exec.Command("node", "--input-type=module", "-e", zarrReader, filepath.Join(dir, "t_000000.zarr"), kind)
	read.Dir = harness.NodePackages
	out, err := read.CombinedOutput()
	if err == nil {
		_, err = fmt.Sscanf(string(out), "right %d %d %d", &blocks, &gone, &lost)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return blocks, gone, lost
}

func zarrWriter(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(zarrScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append([]string{"--summary", "none", "x.lua"}, args...)...)
	cmd.Dir = dir
	return cmd
}

// TestZarr compares arrays with what was sent: in one file, and in shards that end at a number of blocks or of bytes.
func TestZarr(t *testing.T) {
	for _, c := range []struct{ name, kind, options string }{
		{"one file", "real", `{}`},
		{"shards", "complex", `{"rotate": {"packets": 16}, "samples": {"type": "ci16le", "rate": 250e6, "frequency": 1.4e9}}`},
		{"shards of a size", "real", `{"rotate": "100KiB"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := zarrWriter(t, "--options", c.options)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if blocks, gone, lost := readZarr(t, cmd.Dir, c.kind); blocks != 150 || gone != 50 || lost == 0 {
				t.Errorf("%d blocks, of which %d are missing, and %d other packets", blocks, gone, lost)
			}
		})
	}
}

// repairZarr completes the array of a folder by the Python package.
func repairZarr(t *testing.T, dir string) (string, error) {
	t.Helper()
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(filepath.Join(tree.Root, "python"))
	if err != nil {
		t.Fatal(err)
	}
	repair := exec.Command(python, "-m", "daqiri_run.zarr", "t_000000.zarr")
	repair.Dir = dir
	repair.Env = append(os.Environ(), "PYTHONPATH="+folder)
	out, err := repair.CombinedOutput()
	return string(out), err
}

// TestZarrKilled kills a writer in its third shard: readers see the complete ones, and after a repair every whole block.
func TestZarrKilled(t *testing.T) {
	harness.Need(t, "numpy")
	cmd := zarrWriter(t, "--clock", "real", "--loss", "0", "--count", "5000", "--seconds", "600", "--options", `{"rotate": {"packets": 300}}`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	harness.WaitFor(t, "blocks of the third shard", func() bool { return larger(filepath.Join(cmd.Dir, "t_000002.dqb"), 4096+120*8192) })
	if out, err := repairZarr(t, cmd.Dir); err == nil || !strings.Contains(out, "a run still writes files with this prefix") {
		t.Errorf("the repair beside the writer: %v: %s", err, out)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	before, _, _ := readZarr(t, cmd.Dir, "real")
	if before != 600 {
		t.Errorf("%d blocks before the repair, want those of two shards", before)
	}
	if out, err := repairZarr(t, cmd.Dir); err != nil || out != "t_000000.zarr: completed 1 files\n" {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(cmd.Dir, "*.dqb"))
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, name := range files {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		written += int(st.Size()-4096) / 8192
	}
	if blocks, gone, _ := readZarr(t, cmd.Dir, "real"); blocks-gone != written || blocks <= before {
		t.Errorf("%d blocks, of which %d are missing, after the repair; %d in the files, %d before", blocks, gone, written, before)
	}
	if out, err := repairZarr(t, cmd.Dir); err != nil || out != "t_000000.zarr: completed 0 files\n" {
		t.Errorf("a second repair: %v: %s", err, out)
	}
}

// TestZarrRepaired removes the index and the link of two shards, and the array's shape and gaps: the repair makes what the writer had made.
func TestZarrRepaired(t *testing.T) {
	harness.Need(t, "numpy")
	cmd := zarrWriter(t, "--options", `{"rotate": {"packets": 16}, "samples": {"type": "ci16le"}}`)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := func(name string) string { return filepath.Join(cmd.Dir, name) }
	before := contents(t, cmd.Dir)
	for name, key := range map[string]string{"t_000003.dqb": "c.3.0.0.0", "t_000005.dqb": "c.7.0.0.0"} {
		if err := os.Remove(path("t_000000.zarr/" + key)); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path(name), int64(len(before[name])-100)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (m map[string]any) {
		text, err := os.ReadFile(path("t_000000.zarr/zarr.json"))
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	want, lost := read(), read()
	lost["shape"].([]any)[0] = 3
	for _, key := range []string{"missing_blocks", "incomplete_blocks"} {
		lost["attributes"].(map[string]any)[key] = []any{}
	}
	text, err := json.Marshal(lost)
	if err == nil {
		err = os.WriteFile(path("t_000000.zarr/zarr.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := repairZarr(t, cmd.Dir); err != nil || out != "t_000000.zarr: completed 2 files\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("zarr.json is %v\nwant %v", got, want)
	}
	after := contents(t, cmd.Dir)
	for name, text := range before {
		if strings.HasSuffix(name, ".dqb") && after[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
	if target, err := os.Readlink(path("t_000000.zarr/c.7.0.0.0")); target != "../t_000005.dqb" {
		t.Errorf("the link is %s (%v)", target, err)
	}
}
