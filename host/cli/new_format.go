package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/scripts"
)

// blocksRegion is the memory region of the template for a format, behind the one for packets.
const blocksRegion = `    - name: blocks                      # batches in order
      kind: host
      affinity: 0
      num_bufs: 32                      # batches buffered until they are written
      buf_size: 4194304                 # bytes: slots of a batch times the longest payload
    interfaces:
`

// forFormat turns the template's configuration into one for packets of a format, and adds the script, the reader of its blocks and a dissector.
func (f *newFlags) forFormat(name string, from source, config string, declared *format.Format) ([]newFile, error) {
	base, place := filepath.Base(name), declared.Spec.Place
	switch {
	case place != "":
	case declared.Spec.Sequence != "" && len(declared.Spec.Per) == 0:
		place = "packets_per_batch = 64"
	default:
		return nil, exit.Fail(exit.Usage, fmt.Errorf("--format %s: it declares no sequence of packets, by which payloads are put in order: declare `sequence`, with `place` "+
			"where it counts per source (daqiri-run help formats)", f.format))
	}
	if declared.Spec.Layer != "payload" && len(f.interfaces) == 0 {
		return nil, exit.Fail(exit.Usage, fmt.Errorf("--format %s: its header is not in the payload of datagrams: name the interface of the frames, as in --interface eth1", f.format))
	}
	script, err := templates.ReadFile("template/format.lua")
	if err != nil {
		return nil, err
	}
	reader, err := scripts.Reader()
	if err != nil {
		return nil, err
	}
	as := ""
	if from.port != "" && declared.Spec.UDPPort == 0 {
		as = fmt.Sprintf(" -d udp.port==%s,%s", from.port, declared.Protocol())
	}
	text := strings.NewReplacer("AS_PORT", as, "NAME", base, "WHAT", from.what, "FORMAT", f.format, "DECLARED", declaration(f.format), "PLACE", place).Replace(string(script))
	config = strings.Replace(config, "    interfaces:\n", blocksRegion, 1)
	reader = strings.Replace(reader, "read_blocks.py FILE...", base+"-reader.py FILE...", 1)
	return []newFile{{name + ".lua", text}, {name + ".yaml", config}, {name + "-reader.py", reader}, {name + "-dissector.lua", declared.Dissector()}}, nil
}

// declaration returns the value of the option format in a script: the name of a format of the library, or the declaration in a file.
func declaration(of string) string {
	if file, ok := strings.CutSuffix(of, ".lua"); ok {
		return fmt.Sprintf("daqiri.format(require %q)", filepath.Base(file))
	}
	return fmt.Sprintf("%q", of)
}

// beside refuses a format's file that a script of the given name would not find.
func beside(file, name string) error {
	if strings.HasSuffix(file, ".lua") && filepath.Dir(file) != filepath.Dir(name) {
		return exit.Fail(exit.Usage, fmt.Errorf("--format %s: the script finds the file in its own folder only: copy it to %s", file, filepath.Dir(name)))
	}
	return nil
}
