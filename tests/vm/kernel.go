package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// kernel is a kernel of the distribution with its modules.
type kernel struct {
	image   string
	root    string // its modules are in root/lib/modules/release
	release string
}

// newer is the suite of Debian's archive whose kernel is the newest that a release has.
const newer = "trixie-backports"

// getKernel is the kernel in the folder cache; without one it fetches it from the distribution, and where that
// cannot be had it takes the one that is installed. With a suite it is that suite's kernel or none. Safe to run twice at
// once.
func getKernel(cache, suite string) (kernel, error) {
	if err := tools(); err != nil {
		return kernel{}, err
	}
	unlock, err := lock(cache)
	if err != nil {
		return kernel{}, err
	}
	defer unlock()
	kept, err := filepath.Abs(filepath.Join(cache, strings.TrimSuffix("kernel-"+suite, "-")))
	if err != nil {
		return kernel{}, err
	}
	if k, err := findKernel(kept); err == nil {
		return k, nil
	}
	fetchErr := fetchKernel(kept, suite)
	if fetchErr == nil {
		return findKernel(kept)
	}
	if suite != "" {
		return kernel{}, fmt.Errorf("no kernel of %s: %w", suite, fetchErr)
	}
	k, err := findKernel("/")
	if err != nil {
		return k, fmt.Errorf("no kernel: %w; none is installed either: %w", fetchErr, err)
	}
	return k, nil
}

// lock makes the folder and waits until nothing else has it.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() }
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// tools reports what this machine lacks for a virtual one.
func tools() error {
	if runtime.GOARCH != "amd64" {
		return errors.New("the virtual machine runs this machine's programs: x86-64 only")
	}
	for _, name := range []string{"qemu-system-x86_64", "busybox", "modprobe"} {
		if _, err := tool(name); err != nil {
			return err
		}
	}
	return staticBusybox()
}

// staticBusybox reports whether busybox runs where there is no C library, as in the machine's first moments.
func staticBusybox() error {
	path, err := tool("busybox")
	if err != nil {
		return err
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s wants shared libraries (hint: package busybox-static)", path)
		}
	}
	return nil
}

// tool is the path of a command, which may be in a folder that an ordinary user's PATH leaves out.
func tool(name string) (string, error) {
	for _, p := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if found, err := exec.LookPath(p); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is not installed (`make deps` installs it on Debian and Ubuntu)", name)
}

// findKernel finds the newest kernel below root that has modules and can be read.
func findKernel(root string) (kernel, error) {
	images, _ := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	slices.Reverse(images)
	err := fmt.Errorf("%s has none", filepath.Join(root, "boot"))
	for _, image := range images {
		k := kernel{image: image, root: root, release: strings.TrimPrefix(filepath.Base(image), "vmlinuz-")}
		if _, err = os.Stat(filepath.Join(k.modules(), "modules.dep.bin")); err != nil {
			continue
		}
		if _, e := os.Stat(k.plain()); e == nil {
			k.image = k.plain()
		}
		var f *os.File
		if f, err = os.Open(k.image); err == nil {
			return k, f.Close()
		}
	}
	return kernel{}, err
}

func (k kernel) modules() string { return filepath.Join(k.root, "lib/modules", k.release) }

// plain is where a fetched kernel has its image without its own unpacker, which is slow when it is emulated.
func (k kernel) plain() string { return filepath.Join(k.root, "boot/vmlinux-"+k.release) }
