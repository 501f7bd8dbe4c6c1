package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

var cpuRows = []row{
	{name: "governor", why: "a core that changes its frequency wakes up late", look: func(x *exam) {
		slow, seen := map[string]int{}, 0
		for _, cpu := range x.m.Online() {
			if g := x.m.Governor(cpu); g != "" {
				seen++
				if g != "performance" {
					slow[g]++
				}
			}
		}
		switch {
		case seen == 0:
			x.none("the kernel does not set frequencies here, as in a virtual machine")
		case len(slow) > 0:
			x.fail("", fmt.Sprintf("%s of %d cores, not performance", counts(slow), seen), "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
		default:
			x.pass("", fmt.Sprintf("performance on all %d cores", seen))
		}
	}},
	{name: "isolated cores", why: "a core that polls a queue and also runs other programs loses packets while those run", look: isolation},
	{name: "kernel timers", why: "on a core of its own the kernel's ticks and callbacks still interrupt a poller", look: func(x *exam) {
		isolated := x.m.Isolated()
		if len(isolated) == 0 {
			x.none("no core is isolated")
			return
		}
		for _, name := range []string{"nohz_full", "rcu_nocbs"} {
			value, _ := x.m.Cmdline(name)
			if left := without(isolated, cores(value)); len(left) > 0 {
				x.fail(name, fmt.Sprintf("not for cores %s, which are isolated", listText(left)), kernelLine(name+"="+listText(isolated)))
			} else {
				x.pass(name, value)
			}
		}
		if value, _ := x.m.Cmdline("irqaffinity"); value == "" || len(without(cores(value), isolated)) < len(cores(value)) {
			x.fail("irqaffinity", or(value, "not set")+": interrupts go to isolated cores, too", kernelLine("irqaffinity="+listText(without(x.m.Online(), isolated))))
		} else {
			x.pass("irqaffinity", value)
		}
	}},
	{name: "cores", why: "a queue whose core is not there, or that shares it, can't be served at full rate", look: queueCores},
	{name: "clock source", why: "times are read for each burst: a slow clock costs microseconds each time", look: func(x *exam) {
		now, all := x.m.Clock()
		fast := []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter"}
		switch {
		case now == "":
			x.none("the kernel does not say")
		case slices.Contains(fast, now):
			x.pass("", now)
		case slices.Contains(all, "tsc"):
			x.fail("", now+", which needs a system call or the device", "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource")
		default:
			x.fail("", now+", which needs a system call or the device; the kernel has no faster one here: "+strings.Join(all, ", "), kernelLine("tsc=reliable"))
		}
	}},
	{name: "control group", why: "a quota stops threads for a part of each period, and packets are lost in it", look: func(x *exam) {
		text, path, ok := x.m.Control("cpu.max")
		switch {
		case !ok:
			x.none("no control group (version 2) limits processors")
		case !strings.HasPrefix(text, "max"):
			x.fail("cpu.max", text+" us", "echo max | sudo tee "+path+", or run it outside of this group")
		default:
			x.pass("cpu.max", "no limit")
		}
	}},
}

// isolation checks whether the cores pinned by the configuration are isolated, or whether there are isolated cores at all.
func isolation(x *exam) {
	isolated := x.m.Isolated()
	if x.cfg == nil {
		if len(isolated) == 0 {
			x.fail("", fmt.Sprintf("none of cores %s", listText(x.m.Online())), kernelLine("isolcpus="+exampleCores(x.m.Online())))
		} else {
			x.pass("", "cores "+listText(isolated))
		}
		return
	}
	pinned := pinnedCores(x.cfg)
	switch left := without(pinned, isolated); {
	case len(pinned) == 0:
		x.none("no queue of the configuration has a core of its own (cpu_core)")
	case len(left) > 0:
		x.fail("", fmt.Sprintf("queues poll on cores %s, where other programs run", listText(left)), kernelLine("isolcpus="+listText(pinned)))
	default:
		x.pass("", "queues poll on isolated cores "+listText(pinned))
	}
}

// queueCores checks the core of each pinned queue.
func queueCores(x *exam) {
	if x.cfg == nil {
		x.none("no configuration was named")
		return
	}
	online, taken := x.m.Online(), map[int]string{}
	if text, _, ok := x.m.Control("cpuset.cpus.effective"); ok && text != "" {
		online = cores(text)
	}
	for _, q := range queuesOf(x.cfg) {
		core, of := q.CPUCore, "queue "+q.Name
		switch {
		case core < 0:
			continue
		case !slices.Contains(online, core):
			x.fail(of, fmt.Sprintf("core %d is not one that this process may use (%s)", core, listText(online)), "set its cpu_core, or run with --cores auto")
		case core == x.cfg.MasterCore && len(online) > 1:
			x.fail(of, fmt.Sprintf("core %d is master_core, which is to be kept free", core), "set its cpu_core or master_core")
		case taken[core] != "":
			x.fail(of, fmt.Sprintf("core %d serves queue %s, too", core, taken[core]), "give each queue a core: its cpu_core")
		default:
			x.pass(of, fmt.Sprintf("core %d", core))
		}
		taken[core] = q.Name
	}
	if len(x.found) == 0 {
		x.none("no queue of the configuration has a core of its own (cpu_core)")
	}
}

// queuesOf lists all queues of a configuration.
func queuesOf(cfg *spec.Config) (all []*spec.Queue) {
	for _, i := range cfg.Interfaces {
		all = append(all, i.Queues()...)
	}
	return all
}

// pinnedCores lists the cores that queues are pinned to, sorted.
func pinnedCores(cfg *spec.Config) (list []int) {
	for _, q := range queuesOf(cfg) {
		if q.CPUCore >= 0 && !slices.Contains(list, q.CPUCore) {
			list = append(list, q.CPUCore)
		}
	}
	slices.Sort(list)
	return list
}
