package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/session/preflight"
)

// stampWords describes the kinds of receive times.
var stampWords = map[string]string{
	"software": "software: the session's clock, when a packet is taken in",
	"kernel":   "kernel: when it got the packet from its driver",
	"hardware": "hardware: the network device's clock",
	"virtual":  "virtual: the simulated wire's",
	"file":     "file: as they were captured",
}

// timedWords describes whether the device or software observes send times.
var timedWords = map[bool]string{
	true:  "hardware: the device gets a packet up to 10 ms before its time, and holds it until then by its own clock",
	false: "software: the queue's thread is awake before the time and polls the clock until it has come",
}

// noteClocks adds the origin of receive times to the report and, if the configuration requests a device's clock, the available clocks.
func (s *Session) noteClocks() {
	asked := false
	for _, i := range s.ifaces {
		noted := map[string]bool{}
		for _, q := range i.rx {
			kind := q.native.Stamps()
			if noted[kind] {
				continue
			}
			noted[kind] = true
			text := stampWords[kind]
			if i.spec.RX.HardwareTimestamps && kind != "hardware" {
				text += fmt.Sprintf("; the %s engine has no hardware timestamps here", i.Engine())
			}
			s.note("interface %s: receive timestamps: %s", i.Name(), text)
		}
		if len(i.tx) > 0 && i.spec.TX.AccurateSend {
			s.note("interface %s: timed send: %s", i.Name(), timedWords[i.tx[0].native.DeviceTimes()])
		}
		asked = asked || i.spec.RX != nil && i.spec.RX.HardwareTimestamps || i.spec.TX != nil && i.spec.TX.AccurateSend
	}
	if !asked || s.Virtual() {
		return
	}
	clocks := preflight.PTPClocks()
	for _, text := range clocks {
		s.note("%s", text)
	}
	if len(clocks) == 0 {
		s.note("no PTP clock")
	}
}
