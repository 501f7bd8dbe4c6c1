package native

/*
#include "engine/xdp/steer.h"
*/
import "C"

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// The program that selects the frames of the engine, built from engine/xdp/bpf/steer.bpf.c (make bpf).
//
//go:embed engine/xdp/bpf/steer.bpf.o
var steerObject []byte

// steering is the eBPF program of one device, with access to its maps. The link attaches the program to the device: it is
// detached when the process ends in any way.
type steering struct {
	objects struct {
		Program *ebpf.Program `ebpf:"steer"`
		Conf    *ebpf.Map     `ebpf:"conf"`
		Groups  *ebpf.Map     `ebpf:"groups"`
		Entries *ebpf.Map     `ebpf:"entries"`
		Singles *ebpf.Map     `ebpf:"singles"`
		Counts  *ebpf.Map     `ebpf:"counts"`
		Sockets *ebpf.Map     `ebpf:"sockets"`
	}
	c      *C.dq_steer
	link   link.Link
	native bool // driver mode
}

// loadSteering loads the program without attaching it.
func loadSteering() (*steering, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(steerObject))
	if err != nil {
		return nil, err
	}
	s := new(steering)
	if err := spec.LoadAndAssign(&s.objects, nil); errors.Is(err, os.ErrPermission) {
		return nil, errors.New("its eBPF program needs root, or CAP_BPF and CAP_NET_ADMIN")
	} else if err != nil {
		return nil, err
	}
	o := &s.objects
	maps := C.dq_steer_maps{conf: C.int32_t(o.Conf.FD()), groups: C.int32_t(o.Groups.FD()),
		entries: C.int32_t(o.Entries.FD()), singles: C.int32_t(o.Singles.FD()), counts: C.int32_t(o.Counts.FD()),
		sockets: C.int32_t(o.Sockets.FD())}
	var d C.dq_diag
	if err := result("steer", C.dq_steer_new(&maps, &s.c, &d), &d); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// attach attaches the program to a device: in driver mode, else in generic mode.
func (s *steering) attach(device string) error {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	options := link.XDPOptions{Program: s.objects.Program, Interface: dev.Index, Flags: link.XDPDriverMode}
	s.link, err = link.AttachXDP(options)
	s.native = err == nil
	if err != nil && !errors.Is(err, syscall.EBUSY) {
		options.Flags = link.XDPGenericMode
		s.link, err = link.AttachXDP(options)
	}
	return err
}

// change removes and adds rules: the engine gets the frames that some rule matches.
func (s *steering) change(gone, add []Rule) error {
	var d C.dq_diag
	rc := C.dq_steer_change(s.c, (*C.dq_rule)(unsafe.Pointer(first(gone))), C.uint32_t(len(gone)),
		(*C.dq_rule)(unsafe.Pointer(first(add))), C.uint32_t(len(add)), &d)
	return result("flows", rc, &d)
}

// isolate selects only frames that some rule matches, else all; drop drops the selected frames.
func (s *steering) isolate(isolated bool) { C.dq_steer_isolate(s.c, C.bool(isolated)) }
func (s *steering) drop(drop bool)        { C.dq_steer_drop_all(s.c, C.bool(drop)) }

// run enables the program; else all frames go to the kernel.
func (s *steering) run(run bool) { C.dq_steer_run(s.c, C.bool(run)) }

// close detaches the program and frees everything; the sockets must be closed.
func (s *steering) close() {
	if s.link != nil {
		s.link.Close()
	}
	C.dq_steer_free(s.c)
	o := &s.objects
	o.Program.Close()
	for _, m := range []*ebpf.Map{o.Conf, o.Groups, o.Entries, o.Singles, o.Counts, o.Sockets} {
		m.Close()
	}
}

// xdpIface is an interface of engine xdp, and its device.
type xdpIface struct {
	Iface
	device string
}

// steer attaches a program to the interface, or passes on the reason of the failure: the engine then runs without, or fails to
// open.
func (i xdpIface) steer() *steering {
	var x C.dq_xdp
	s, err := loadSteering()
	if err == nil {
		if err = s.attach(i.device); err != nil {
			s.close()
			s = nil
		}
	}
	if err == nil {
		x.steer, x.native = s.c, C.bool(s.native)
	} else {
		refused := syscall.EINVAL
		errors.As(err, &refused)
		x.refused = C.int32_t(refused)
		put(x.why[:], "reason", fmt.Sprintf("%.200s", err.Error()))
	}
	if C.dq_iface_xdp(i.c, &x) != 0 && s != nil {
		s.close()
		return nil
	}
	return s
}

// WantedBy reports whether some rule matches an Ethernet frame, according to the classifier in user space.
func WantedBy(rules []Rule, frame []byte) (bool, error) {
	var d C.dq_diag
	rc := C.dq_rules_want((*C.dq_rule)(unsafe.Pointer(first(rules))), C.uint32_t(len(rules)), (*C.uint8_t)(first(frame)), C.uint32_t(len(frame)), &d)
	return rc > 0, result("flows", min(rc, 0), &d)
}

// steerCounts are the program's counters: frames to a socket, to the kernel, and dropped.
type steerCounts struct{ Ours, Passed, Dropped uint64 }

func (s *steering) counts() steerCounts {
	var c C.dq_steer_counts
	C.dq_steer_read(s.c, &c)
	return steerCounts{uint64(c.ours), uint64(c.passed), uint64(c.dropped)}
}
