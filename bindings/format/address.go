package format

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// fieldValue converts a Lua number, u64 or address text to the value of a field.
func fieldValue(name string, v lua.LValue, f session.Field) (uint64, error) {
	s, ok := v.(lua.LString)
	switch {
	case !ok:
		return row.Unsigned(v, int(f.BitWidth))
	case strings.HasPrefix(name, "eth_"):
		mac, err := ParseMAC(string(s))
		return binary.BigEndian.Uint64(append([]byte{0, 0}, mac[:]...)), err
	case strings.HasPrefix(name, "ipv4_"):
		a, err := netip.ParseAddr(string(s))
		if err != nil || !a.Is4() {
			return 0, fmt.Errorf("%q is not an IPv4 address", string(s))
		}
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:])), nil
	}
	return 0, fmt.Errorf("a number expected, got %s", row.Describe(v))
}

// FieldText formats a field's value as fieldValue reads it.
func FieldText(name string, v uint64, signed bool) string {
	switch {
	case name == "eth_src" || name == "eth_dst":
		b := binary.BigEndian.AppendUint64(nil, v)
		return net.HardwareAddr(b[2:]).String()
	case name == "ipv4_src" || name == "ipv4_dst":
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(v)))).String()
	case signed:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}

// ParseMAC returns the bytes of an Ethernet address.
func ParseMAC(text string) (mac [6]byte, err error) {
	m, err := net.ParseMAC(text)
	if err != nil || len(m) != 6 {
		return mac, fmt.Errorf("%q is not an Ethernet address such as 02:00:00:00:00:01", text)
	}
	return [6]byte(m), nil
}
