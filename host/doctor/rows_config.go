package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/task"
)

var configRows = []row{
	{name: "this build", why: "what a configuration asks for and this build of the program lacks can't be opened", look: func(x *exam) {
		if x.cfg == nil {
			x.pass("", "engines "+strings.Join(preflight.Engines(), ", "))
			return
		}
		for _, issue := range preflight.Obstacles(x.cfg) {
			x.fail("", issue.Error(), "see 'daqiri-run help KEY' of the key that is named")
		}
		if len(x.found) == 0 {
			x.pass("", "opens everything that the configuration asks for")
		}
	}},
	{name: "addresses", why: "an interface or address that this machine does not have can't be opened", look: addresses},
	{name: "features", why: "what is done by hardware costs nothing, what is done by software or copied costs CPU time", look: features},
}

// addresses checks the address of each interface.
func addresses(x *exam) {
	if x.cfg == nil {
		x.none("no configuration was named")
		return
	}
	own := ownAddresses()
	for _, i := range x.cfg.Interfaces {
		of, address := "interface "+i.Name, i.Address
		switch i.EngineName() {
		case schema.EngineXDP, schema.EnginePacket:
			x.device(of, address)
		case schema.EngineDPDK:
			x.card(of, address)
		case schema.EngineSocket, schema.EngineRDMA:
			if local := i.SocketConfig.Local; local != nil {
				x.local(of, local.Addr, own)
			}
		}
	}
	x.orNone("no interface of the configuration is of this machine")
}

func (x *exam) device(of, name string) {
	var names []string
	for _, i := range x.m.Interfaces() {
		if i.Name == name {
			x.pass(of, name)
			return
		}
		names = append(names, i.Name)
	}
	x.fail(of, "there is no interface "+name, "set its address to one of "+strings.Join(names, ", "))
}

func (x *exam) card(of, address string) {
	if strings.HasPrefix(address, "vdev:") {
		x.pass(of, address)
		return
	}
	full := address
	if strings.Count(address, ":") == 1 {
		full = "0000:" + address
	}
	for _, p := range x.m.PCIs(classNetwork) {
		switch {
		case p.Address != full:
		case slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core", "mlx4_core"}, p.Driver):
			x.pass(of, address+", driver "+p.Driver)
			return
		default:
			x.fail(of, address+" has the kernel's driver "+or(p.Driver, "(none)"), "sudo dpdk-devbind.py --bind=vfio-pci "+full)
			return
		}
	}
	x.fail(of, "there is no network card at "+address, "lspci -D | grep -i ethernet lists those that are there; set its address")
}

func (x *exam) local(of string, addr netip.Addr, own []string) {
	if addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() || slices.Contains(own, addr.WithZone("").String()) {
		x.pass(of, addr.String())
		return
	}
	x.fail(of, fmt.Sprintf("%s is not an address of this machine, which has %s", addr, strings.Join(own, ", ")), fmt.Sprintf("sudo ip addr add %s/24 dev %s", addr, x.firstDevice()))
}

// features opens the configuration without starting it, and reports what is done in hardware, in software or by copying.
func features(x *exam) {
	if x.cfg == nil {
		x.none("no configuration was named")
		return
	}
	scheduler := task.NewScheduler()
	defer scheduler.Close()
	s, err := session.Open(x.cfg, session.Env{Scheduler: scheduler})
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			x.fail("", "can't be opened: "+strings.TrimSpace(line), "mend what it names; rows below may say how")
		}
		return
	}
	defer s.Close()
	for _, line := range s.Report() {
		of, text := "", line
		for _, kind := range []string{"interface ", "region ", "queue "} {
			if name, rest, ok := strings.Cut(strings.TrimPrefix(line, kind), ": "); ok && strings.HasPrefix(line, kind) {
				of, text = kind+name, rest
			}
		}
		if by := doneBy(text); by != "" && !strings.HasPrefix(text, by) {
			text = by + ": " + text
		}
		x.pass(of, text)
	}
	x.orNone("the report does not have it")
}

// doneBy classifies a line of the report: "hardware", "software" or "copy"; "" if it does not state it.
func doneBy(text string) string {
	for _, w := range []struct{ word, by string }{{"copy", "copy"}, {"copies", "copy"}, {"copied", "copy"}, {"software", "software"},
		{"kernel", "software"}, {"hardware", "hardware"}, {"device", "hardware"}, {"zero-copy", "hardware"}} {
		if strings.Contains(text, w.word) && !strings.Contains(text, "no "+w.word) && !(w.word == "copy" && strings.Contains(text, "zero-copy")) {
			return w.by
		}
	}
	return ""
}
