package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
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
	false: "software: the queue's thread is awake before the time and looks at the clock until it has come",
}

// noteClocks adds the origin of receive times to the report and, if the configuration requests a device's clock, the available clocks.
func (s *Session) noteClocks() {
	asked := false
	for _, i := range s.ifaces {
		said := map[string]bool{}
		for _, q := range i.rx {
			kind := q.native.Stamps()
			if said[kind] {
				continue
			}
			said[kind] = true
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
	clocks := native.PTPClocks()
	for _, c := range clocks {
		s.note("%s", ptpText(c))
	}
	if len(clocks) == 0 {
		s.note("no PTP clock")
	}
}

// ptpText returns the description of a PTP clock.
func ptpText(c native.PTPClock) string {
	name := fmt.Sprintf("PTP clock ptp%d (%s)", c.Index, c.Name)
	if c.Err != nil {
		return fmt.Sprintf("%s: %v", name, c.Err)
	}
	return fmt.Sprintf("%s: %.9f s ahead of the system's clock, within %d ns", name, c.Offset.Seconds(), c.Within.Nanoseconds())
}

// PTPClocks returns descriptions of the PTP hardware clocks of this host.
func PTPClocks() []string {
	list := []string{}
	for _, c := range native.PTPClocks() {
		list = append(list, ptpText(c))
	}
	return list
}
