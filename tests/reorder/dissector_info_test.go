package reorder

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// infoFormat has a field of each kind that the column Info shows in its own way.
const infoFormat = `return { name = "board", udp_port = 4016,
  { "magic", 16, const = 0xabcd }, { "seq", 16 }, { "kind", 8, values = { [1] = "data" } }, { "flags", "u32", base = "hex" }, { "id", "u64le", base = "hex" },
  { "temp", "i16", scale = 0.5, unit = "C" }, { "gain", "f32le", scale = 2, unit = "dB" }, { "from", "mac" }, { "blob", "bytes2" }, { "large", "u64" },
  { "beyond", 8 }, }`

// TestDissectorInfo checks the column Info of Wireshark, base "hex", and that a declared port needs no option: the comment doesn't ask for one.
// b:show prints the same.
func TestDissectorInfo(t *testing.T) {
	harness.Need(t, "tshark")
	dir := t.TempDir()
	for name, text := range map[string]string{"board.lua": infoFormat, "show.lua": `
local daqiri = require "daqiri"
local s = daqiri.open()
s:rx_queue("loop0"):on_burst(function(b) print(b:show{ format = daqiri.format(require "board"), fields = { "kind", "flags", "id", "temp", "gain" }, n = b.n }) end)
s:run{}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := harness.Built(t)
	text, err := exec.Command(program, "dissector", filepath.Join(dir, "board.lua")).Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "dissector.lua"), text, 0o600)
	}
	if err != nil || strings.Contains(string(text), " -d ") {
		t.Fatalf("%v, and the port is declared:\n%.300s", err, text)
	}
	rest := "0200000000ff" + "6162" + "ffffffffffffffff" + "07"
	capture := framesAround(t, []formatPacket{
		{Hex: "abcd" + "0005" + "01" + "deadbeef" + "efcdab8967452301" + "fffb" + "0000c03f" + rest},
		{Hex: "abcd" + "0006" + "02" + "00000000" + "0000000000000000" + "0002" + "00000000" + rest},
	}, wrap{port: 4016})
	out, err := exec.Command("tshark", "-X", "lua_script:"+filepath.Join(dir, "dissector.lua"), "-r", capture).CombinedOutput()
	for _, want := range []string{
		"seq 5, kind data, flags 0xdeadbeef, id 0x123456789abcdef, temp -2.5 C, gain 3 dB, from 02:00:00:00:00:ff, large 18446744073709551615\n",
		"seq 6, kind 2, flags 0x0, id 0x0, temp 1 C, gain 0 dB, from 02:00:00:00:00:ff, large 18446744073709551615\n",
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want the column Info %s\n%s", err, want, out)
		}
	}
	out, err = exec.Command("tshark", "-X", "lua_script:"+filepath.Join(dir, "dissector.lua"), "-r", capture, "-V").CombinedOutput()
	for _, want := range []string{"flags: 0xdeadbeef", "id: 0x0123456789abcdef", "temp: -5 (-2.5 C)", "gain: 1.5 (3 dB)"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %s\n%s", err, want, out)
		}
	}
	show := exec.Command(program, "--summary", "none", "--source", capture+",speed=max", "show.lua")
	show.Dir = dir
	out, err = show.CombinedOutput()
	if want := "data 0xdeadbeef 0x123456789abcdef -2.5 C 3 dB"; err != nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), want) {
		t.Errorf("%v, want %s\n%s", err, want, out)
	}
}
