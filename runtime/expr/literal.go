package expr

import (
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxExponent is the maximum exponent of numbers such as 1e400 and 2^400. It bounds the cost of exact computation.
const maxExponent = 400

// units maps a unit to its factor, in bits per second, bytes or nanoseconds.
var units = map[string]int64{
	"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12,
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9,
}

var unitNames = func() []string {
	var names []string
	for u := range units {
		names = append(names, u)
	}
	slices.Sort(names)
	return names
}()

// parseNumber parses the digits and the unit that the lexer separated.
func parseNumber(at Pos, digits, unit string) (*number, error) {
	val, err := parseDigits(at, digits)
	if err != nil {
		return nil, err
	}
	if unit != "" {
		factor, ok := units[unit]
		if !ok {
			at.Col += len(digits)
			return nil, errorAt(at, "unknown unit '%s'%s", unit, suggestion(unit, unitNames))
		}
		val.Mul(val, new(big.Rat).SetInt64(factor))
	}
	return &number{at, digits + unit, val}, nil
}

func parseDigits(at Pos, digits string) (*big.Rat, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		n, ok := new(big.Int).SetString(hex, 16)
		if !ok {
			return nil, errorAt(at, "malformed number '%s'", digits)
		}
		return new(big.Rat).SetInt(n), nil
	}
	if _, exp, ok := strings.Cut(strings.ToLower(digits), "e"); ok {
		e, err := strconv.Atoi(exp)
		if err != nil {
			return nil, errorAt(at, "malformed number '%s'", digits)
		}
		if e > maxExponent || e < -maxExponent {
			return nil, errorAt(at, "the exponent of '%s' is outside -%d..%d", digits, maxExponent, maxExponent)
		}
	}
	val, ok := new(big.Rat).SetString(digits)
	if !ok {
		return nil, errorAt(at, "malformed number '%s'", digits)
	}
	return val, nil
}

// parseAddress parses an IPv4, IPv6 or MAC address; length is the text after a slash, or empty.
func parseAddress(at Pos, text, length string) (node, error) {
	if mac, ok := parseMAC(text); ok {
		if length != "" {
			return nil, errorAt(at, "'%s' is a MAC address and takes no prefix length", text)
		}
		return &number{at, text, new(big.Rat).SetInt64(mac)}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return nil, errorAt(at, "malformed address '%s'", text)
	}
	if length == "" {
		if addr.Is4() {
			return &number{at, text, new(big.Rat).SetUint64(ipv4Bits(addr))}, nil
		}
		return &address{at, text, netip.PrefixFrom(addr, 128), true}, nil
	}
	bits, err := strconv.Atoi(length)
	if err != nil || bits > addr.BitLen() {
		return nil, errorAt(at, "prefix length %s of '%s' is outside 0..%d", length, text, addr.BitLen())
	}
	prefix := netip.PrefixFrom(addr, bits)
	if masked := prefix.Masked(); masked != prefix {
		return nil, errorAt(at, "'%s' has bits beyond its prefix (did you mean '%s'?)", prefix, masked)
	}
	return &address{at, text + "/" + length, prefix, false}, nil
}

func ipv4Bits(a netip.Addr) uint64 {
	b := a.As4()
	return uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
}

func parseMAC(text string) (int64, bool) {
	groups := strings.Split(text, ":")
	if len(groups) != 6 {
		return 0, false
	}
	var mac int64
	for _, g := range groups {
		b, err := strconv.ParseUint(g, 16, 8)
		if err != nil || len(g) != 2 {
			return 0, false
		}
		mac = mac<<8 | int64(b)
	}
	return mac, true
}
