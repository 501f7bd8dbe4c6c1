package doctor

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
)

var gpuRows = []row{
	{name: "GPU", why: "regions of kind device and kernels need one, with its driver", look: func(x *exam) {
		for _, p := range x.gpus() {
			if p.Driver == "nvidia" {
				x.pass(p.Address, "driver nvidia")
			} else {
				x.fail(p.Address, "its driver is "+or(p.Driver, "none"), "sudo apt-get install nvidia-driver, and reboot")
			}
		}
		x.orNone("no NVIDIA GPU")
	}},
	{name: "GPU driver", why: "the program opens it at run time, and needs one of CUDA 11.7 or later", look: func(x *exam) {
		switch plan, err := x.driver(); {
		case errors.Is(err, errNotAsked), err != nil && len(x.gpus()) == 0:
			x.none("no NVIDIA GPU, or none is used")
		case err != nil:
			x.fail("", err.Error(), "sudo apt-get install nvidia-driver, and reboot")
		default:
			for _, g := range plan.GPUs {
				x.pass(fmt.Sprintf("GPU %d", g.Number), fmt.Sprintf("%s at %s, compute capability %s, %s; driver of CUDA %s", g.Name, g.Bus, g.Compute, size(int(g.Bytes)), plan.Driver))
			}
		}
	}},
	{name: "GPU peer memory", why: "a card writes into a GPU's memory only by DMA-BUF or with the module nvidia_peermem", look: func(x *exam) {
		plan, err := x.driver()
		switch {
		case len(x.gpus()) == 0:
			x.none("no NVIDIA GPU, or none is used")
		case err == nil && !slices.ContainsFunc(plan.GPUs, noDMABuf):
			x.pass("", "by DMA-BUF")
		case x.m.Module("nvidia_peermem"):
			x.pass("", "module nvidia_peermem is loaded")
		default:
			x.fail("", "module nvidia_peermem is not loaded", "sudo modprobe nvidia-peermem")
		}
	}},
	{name: "GPU window", why: "a card reaches only so much of a GPU's memory as its window (BAR1) shows", look: func(x *exam) {
		for _, p := range x.gpus() {
			if len(p.BARs) < 2 || p.BARs[1] == 0 {
				continue
			}
			if p.BARs[1] <= 1<<30 {
				x.fail(p.Address, size(int(p.BARs[1])), "turn on Above 4G Decoding and Resizable BAR in the firmware's setup")
			} else {
				x.pass(p.Address, size(int(p.BARs[1])))
			}
		}
		x.orNone("no NVIDIA GPU shows one")
	}},
	{name: "GPU and card", why: "what crosses the processor between card and GPU passes at half the rate or less", look: func(x *exam) {
		nics := x.m.PCIs(classNetwork)
		for _, g := range x.gpus() {
			best, by := "", ""
			for _, n := range nics {
				if d := g.Distance(n); best == "" || rank(d) < rank(best) {
					best, by = d, n.Address
				}
			}
			switch {
			case best == "":
				continue
			case rank(best) > 1:
				x.fail(g.Address, fmt.Sprintf("the nearest card is %s: %s", by, best), "put the card behind the same PCIe switch as the GPU (nvidia-smi topo -m)")
			default:
				x.pass(g.Address, by+": "+best)
			}
		}
		x.orNone("no NVIDIA GPU beside a network card")
	}},
	{name: "GPU and cores", why: "what crosses to the GPU from the other processor's memory passes at half the rate or less", look: gpuCores},
	{name: "GPU storage", why: "cuFile writes from a GPU's memory straight to ext4 and XFS; what goes elsewhere is copied to host memory first", look: func(x *exam) {
		if _, err := x.driver(); err != nil {
			x.none("no GPU")
			return
		}
		for _, dir := range x.dirs {
			switch name := fileSystem(dir); name {
			case "ext4", "xfs":
				x.pass(dir, name)
			default:
				x.none(dir + " is on " + name + ": by host memory")
			}
		}
	}},
}

var errNotAsked = errors.New("the driver was not asked")

// driver returns the driver's data, queried once.
func (x *exam) driver() (*preflight.GPUPlan, error) {
	if x.gpuPlan == nil {
		return nil, errNotAsked
	}
	return x.gpuPlan()
}

// gpuCores compares the NUMA nodes of GPUs and of the configuration's cores.
func gpuCores(x *exam) {
	plan, err := x.driver()
	if err != nil || len(x.m.Nodes()) < 2 {
		x.none(map[bool]string{true: "no GPU", false: "the machine has one node"}[err != nil])
		return
	}
	for _, g := range plan.GPUs {
		of := fmt.Sprintf("GPU %d", g.Number)
		if g.NUMANode < 0 {
			continue
		}
		near, far := x.m.NodeCPUs(g.NUMANode), ""
		for _, core := range x.queueCores() {
			if x.m.CPUNode(core) != g.NUMANode {
				far = fmt.Sprintf("core %d is on node %d, the GPU on node %d", core, x.m.CPUNode(core), g.NUMANode)
			}
		}
		if far != "" {
			x.fail(of, far, "set cpu_core to some of "+listText(near))
		} else {
			x.pass(of, fmt.Sprintf("node %d, cores %s", g.NUMANode, listText(near)))
		}
	}
	x.orNone("no GPU is on a node")
}

// queueCores lists the cores that the configuration pins queues to.
func (x *exam) queueCores() (cores []int) {
	if x.cfg == nil {
		return nil
	}
	for _, c := range x.cfg.Interfaces {
		for _, q := range c.Queues() {
			if q.CPUCore >= 0 {
				cores = append(cores, q.CPUCore)
			}
		}
	}
	return cores
}

// fileSystem returns the file system type of a folder (statfs(2)).
func fileSystem(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err.Error()
	}
	known := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs",
		unix.NFS_SUPER_MAGIC: "nfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs"}
	if name := known[int64(fs.Type)]; name != "" {
		return name
	}
	return fmt.Sprintf("a file system of type %#x", fs.Type)
}

// gpus lists NVIDIA display and 3D controllers.
func (x *exam) gpus() []machine.PCI {
	return slices.DeleteFunc(x.m.PCIs(classDisplay), func(p machine.PCI) bool { return p.Vendor != 0x10de })
}

// rank returns the order of a distance, nearest first.
func rank(distance string) int {
	return slices.Index([]string{"PIX", "PXB", "PHB", "NODE", "SYS"}, distance)
}

func noDMABuf(g preflight.GPU) bool { return !g.DMABuf }
