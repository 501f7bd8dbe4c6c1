package script

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	got, err := Describe("x.lua", `#!/usr/bin/env daqiri-run
-- x.lua: records what comes.
--   daqiri-run x.lua --rate 1Gbit/s
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "x.yaml", help = "has rx_port" },
  rate = { type = "string", required = true, unit = "bit/s", help = "at which" },
  dirs = { { "a", "b" }, help = "folders" },
  bytes = 2 * 1024, low = -1, fast = true,
  form = { "raw", choices = { "raw", "pcap" } },
  seed = os.time(),
}
`)
	want := Description{Summary: "records what comes.", Words: []string{"  daqiri-run x.lua --rate 1Gbit/s"}, Args: []Arg{
		{Name: "bytes", Type: "number", Default: "2048"},
		{Name: "config", Type: "string", Default: "x.yaml", Help: "has rx_port"},
		{Name: "dirs", Type: "list", Default: "a,b", Help: "folders"},
		{Name: "fast", Type: "boolean", Default: "true"},
		{Name: "form", Type: "string", Default: "raw", Choices: []string{"raw", "pcap"}},
		{Name: "low", Type: "number", Default: "-1"},
		{Name: "rate", Type: "string", Unit: "bit/s", Help: "at which", Required: true},
		{Name: "seed", Type: "string"},
	}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Configuration() != "x.yaml" {
		t.Error(got.Configuration())
	}
	if _, err := Describe("y.lua", "-- y.lua: broken\nlocal = 3\n"); err == nil {
		t.Error("a script with a fault has no error")
	}
}
