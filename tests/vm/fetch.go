package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// fetchKernel downloads and unpacks the kernel package that linux-image-amd64 stands for. The folder `to` appears
// when it is complete.
func fetchKernel(to string) error {
	name, err := kernelPackage()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := command(dir, "apt-get", "-q", "download", name); err != nil {
		return err
	}
	packages, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(packages) != 1 {
		return fmt.Errorf("apt-get download %s brought %d packages", name, len(packages))
	}
	root := filepath.Join(dir, "kernel")
	if err := command(dir, "dpkg", "-x", packages[0], root); err != nil {
		return err
	}
	if err := settle(root); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Rename(root, to)
}

var dependsLine = regexp.MustCompile(`(?m)^ *Depends: (linux-image-\S+)$`)

// kernelPackage is the name of the package that the distribution's linux-image-amd64 depends on.
func kernelPackage() (string, error) {
	out, err := exec.Command("apt-cache", "depends", "linux-image-amd64").Output()
	if err != nil {
		return "", fmt.Errorf("apt-cache depends linux-image-amd64: %w (hint: on Debian, apt-get update)", err)
	}
	m := dependsLine.FindSubmatch(out)
	if m == nil {
		return "", errors.New("apt-cache knows no kernel that linux-image-amd64 depends on (hint: apt-get update)")
	}
	return string(m[1]), nil
}

// unused are modules that no test wants: half of all. Bluetooth takes seconds to load, when libpcap looks for devices.
var unused = []string{"sound", "drivers/gpu", "drivers/media", "drivers/net/wireless", "drivers/staging", "drivers/scsi", "drivers/iio",
	"drivers/bluetooth", "net/bluetooth"}

// settle does to an unpacked kernel what its installation would do: it lists what its modules need, in
// root/lib/modules/RELEASE.
func settle(root string) error {
	if _, err := os.Stat(filepath.Join(root, "lib")); err != nil { // newer packages have usr/lib only
		if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
			return err
		}
	}
	images, _ := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if len(images) != 1 {
		return fmt.Errorf("it has %d kernels", len(images))
	}
	k := kernel{image: images[0], root: root, release: strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")}
	for _, u := range unused {
		if err := os.RemoveAll(filepath.Join(k.modules(), "kernel", u)); err != nil {
			return err
		}
	}
	depmod, err := tool("depmod")
	if err != nil {
		return err
	}
	if err := command(root, depmod, "-b", root, k.release); err != nil {
		return err
	}
	return unpack(k.image, k.plain())
}

// unpack writes the ELF file that a bzImage has inside, which qemu starts too; none where it is not packed with xz.
func unpack(image, to string) error {
	data, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	const sectors, offset, length = 0x1f1, 0x248, 0x24c // in its header: Documentation/arch/x86/boot.rst
	if len(data) < length+4 {
		return fmt.Errorf("%s has %d bytes: no bzImage", image, len(data))
	}
	from := (int(data[sectors])+1)*512 + int(binary.LittleEndian.Uint32(data[offset:]))
	end := from + int(binary.LittleEndian.Uint32(data[length:])) - 4 // its size when unpacked is last
	if from > end || end > len(data) {
		return fmt.Errorf("%s: its payload ends at %d of %d bytes", image, end, len(data))
	}
	if !bytes.HasPrefix(data[from:end], []byte("\xfd7zXZ\x00")) {
		return nil
	}
	xz := exec.Command("xz", "-dc")
	xz.Stdin = bytes.NewReader(data[from:end])
	plain, err := xz.Output()
	if err != nil {
		return fmt.Errorf("xz -dc: %w", err)
	}
	return os.WriteFile(to, plain, 0o644)
}

// command runs a command in a folder; the error holds what it said.
func command(dir, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
