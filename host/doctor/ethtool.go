package doctor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// groCommand is ETHTOOL_GGRO in linux/ethtool.h.
const groCommand = 0x2b

// groAt queries by ioctl SIOCETHTOOL whether GRO is enabled on a device. fd is any socket.
func groAt(fd int, name string) (bool, error) {
	value := struct{ cmd, data uint32 }{cmd: groCommand}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // rest of struct ifreq
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return false, errno
	}
	return value.data != 0, nil
}
