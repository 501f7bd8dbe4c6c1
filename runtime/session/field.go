package session

import "github.com/daqiri/daqiri-run/native"

// Field is a field of 1 to 64 bits in each packet.
type Field = native.Field

// Csum is what becomes of the IPv4, UDP, TCP and ICMP checksums of packets in which a field is set.
type Csum = native.Csum

// What becomes of checksums.
const (
	CsumKeep   = native.CsumKeep
	CsumUpdate = native.CsumUpdate // they follow by the difference: right ones stay right, wrong ones wrong
)

// What a field's offset counts from, and its flags.
const (
	BaseStart   = native.BaseStart   // the first byte of what the queue holds
	BaseL3      = native.BaseL3      // the network header
	BaseL4      = native.BaseL4      // the transport header
	BasePayload = native.BasePayload // the innermost payload
	BaseSpead   = native.BaseSpead   // an item of SPEAD-64-48: BitOffset is its id, BitWidth 48
	FieldLE     = native.FieldLE     // little endian
	FieldSigned = native.FieldSigned
)

// FieldNamed returns the field of that name that every packet may have, such as "udp_dst".
func FieldNamed(name string) (Field, bool) { return native.FieldNamed(name) }

// FieldNames lists the names that FieldNamed knows.
func FieldNames() []string { return native.FieldNames() }
