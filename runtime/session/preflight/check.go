// Package preflight examines a configuration before it is opened: what this version of the program lacks, which cores serve its queues, and which
// GPUs and clocks this host has.
package preflight

import (
	"os"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// OpenError lists the reasons why a valid configuration cannot be opened on this machine.
type OpenError struct{ spec.Errors }

// checker collects settings that are valid but cannot be opened.
type checker struct {
	cfg    *spec.Config
	issues []spec.Issue
}

func (c *checker) errorf(at spec.Source, format string, args ...any) {
	c.issues = append(c.issues, at.Errorf(format, args...))
}

// missing reports a feature that is not implemented.
func (c *checker) missing(at spec.Source, what string) {
	c.errorf(at, "%s not in this version", what)
}

// Obstacles returns the reasons why this build of the program cannot open a valid configuration, regardless of the machine, each with its position in
// the file.
func Obstacles(cfg *spec.Config) []spec.Issue {
	issues := append(Check(cfg), gpuObstacles(cfg)...)
	for _, i := range cfg.Interfaces {
		if i.EngineName() != schema.EngineDPDK {
			continue
		}
		if err := native.DPDKThere(i.Name); err != nil {
			issues = append(issues, i.Key("address").Errorf("%v", err))
		}
	}
	return issues
}

// UsesGPU reports whether the session has regions in GPU memory or regions accessible to GPUs.
func UsesGPU(cfg *spec.Config) bool { return slices.ContainsFunc(cfg.MemoryRegions, isForGPU) }

func isForGPU(r *spec.MemoryRegion) bool {
	return r.Kind == schema.KindDevice || r.Kind == schema.KindHostPinned
}

// gpuObstacles returns the regions whose GPU is missing.
func gpuObstacles(cfg *spec.Config) (issues []spec.Issue) {
	if !UsesGPU(cfg) {
		return nil // does not open the driver
	}
	_, gpus, err := native.GPUs()
	for _, r := range cfg.MemoryRegions {
		switch {
		case !isForGPU(r):
		case err != nil:
			issues = append(issues, r.Key("kind").Errorf("%v", err))
		case r.Kind == schema.KindDevice && r.Affinity >= len(gpus):
			issues = append(issues, r.Key("affinity").Errorf("there is no GPU %d: this host has %d, numbered from 0", r.Affinity, len(gpus)))
		}
	}
	return issues
}

// HasVerbs reports whether engine ibverbs can serve the device of a PCI address: this build has the engine, and the device's driver offers verbs.
func HasVerbs(address string) bool {
	if strings.Count(address, ":") == 1 {
		address = "0000:" + address
	}
	_, err := os.Stat("/sys/bus/pci/devices/" + strings.ToLower(address) + "/infiniband")
	return err == nil && slices.Contains(Engines(), schema.EngineIBVerbs)
}

// Engines returns the names of this version's engines.
func Engines() []string {
	var names []string
	for _, e := range native.Engines() {
		names = append(names, e.Name)
	}
	return names
}

// Check returns all issues that prevent opening the configuration, except those that only the engines can detect.
func Check(cfg *spec.Config) []spec.Issue {
	c := &checker{cfg: cfg}
	if cfg.Loopback.Mode == "hw" {
		c.missing(cfg.Key("loopback"), "loopback inside the network card is")
	}
	if len(cfg.Interfaces) == 0 {
		c.errorf(cfg.Source, "interfaces: there is none to open")
	}
	for _, i := range cfg.Interfaces {
		c.iface(i)
	}
	c.endpoints()
	return c.issues
}

func (c *checker) iface(i *spec.Interface) {
	engines := native.Engines()
	k := slices.IndexFunc(engines, func(e native.Engine) bool { return e.Name == i.EngineName() })
	if c.cfg.Loopback.Clock == "virtual" && !engines[k].VirtualClock {
		at := i.Key("socket_config")
		if !i.Socket() {
			at = i.Key("address")
		}
		c.errorf(at, "engine %s can't run on the virtual clock", i.EngineName())
	}
	if i.RX != nil {
		c.rx(i.RX)
	}
	if i.Socket() {
		for _, q := range i.Queues() {
			c.issues = append(c.issues, q.NotOnEndpoints()...)
		}
	}
}

func (c *checker) rx(rx *spec.RX) {
	for _, f := range rx.Flows {
		if f.ID == 0 && len(f.Transforms()) > 0 {
			c.errorf(f.Key("id"), "a flow with %s needs an id other than 0: packets are known by it", f.Transforms()[0].Type)
		}
	}
}

// endpoints reports interfaces with the same local address. Multicast groups may be shared.
func (c *checker) endpoints() {
	owner := map[string]*spec.Interface{}
	for _, i := range c.cfg.Interfaces {
		if !i.Socket() || i.SocketConfig.Local == nil {
			continue
		}
		local := i.SocketConfig.Local
		if local.Port == 0 || local.Addr.IsMulticast() {
			continue
		}
		if first := owner[local.String()]; first != nil {
			c.errorf(i.SocketConfig.Key("local_addr"), "%s is the address of interface %s already", local, first.Name)
			continue
		}
		owner[local.String()] = i
	}
}
