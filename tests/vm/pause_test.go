package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pauseScript = `
local daqiri = require "daqiri"
local port = { name = "port", address = "card", engine = "packet", rx = { queues = { { name = "rx", id = 0, cpu_core = -1,
  batch_size = 64, timeout_us = 1000, memory_regions = { "m" } } } } }
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, interfaces = { port },
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 256, buf_size = 2048 } } }
print(s:report())
s:close()
`

// TestPause opens an e1000 card of the kernel's whose pause frames ethtool switched on for one direction, then off: the session's report
// has a note while they are on, with the direction that ethtool shows.
func TestPause(t *testing.T) {
	t.Parallel()
	k := need(t, "ethtool")
	program := build(t, "./cmd/daqiri-run")
	script := filepath.Join(t.TempDir(), "pause.lua")
	if err := os.WriteFile(script, []byte(pauseScript), 0o644); err != nil {
		t.Fatal(err)
	}
	said := must(t, k, machine{nics: 1}, `
		pci=/sys/bus/pci at=0000:00:05.0
		echo $at >$pci/drivers/uio_pci_generic/unbind
		echo >$pci/devices/$at/driver_override
		modprobe e1000 || exit # probes the card
		card=$(ls $pci/devices/$at/net) || exit
		ip link set $card name card && ip link set card up || exit
		for rx in on off; do
			ethtool -A card autoneg off rx $rx tx off
			ethtool -a card
			`+quote(program)+" "+quote(script)+` || exit
			echo end
		done`)
	on, off, _ := strings.Cut(said, "\nend\n")
	if !strings.Contains(on, "\nRX:\t\ton\n") || !strings.Contains(off, "\nRX:\t\toff\n") {
		t.Fatalf("ethtool did not switch pause:\n%s", said)
	}
	const note = "interface port: pause frames (802.3x) are on: card stops sending when its peer asks; hint: "
	if !strings.Contains(on, note) {
		t.Errorf("no note %q:\n%s", note, on)
	}
	if strings.Contains(off, "pause frames") {
		t.Errorf("a note although pause is off:\n%s", off)
	}
}
