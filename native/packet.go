package native

/*
#include "packet/packet.h"
*/
import "C"

// Headers are the offsets of a packet's headers from its start; -1: absent.
type Headers struct {
	L3, L4, Payload, PayloadLen, End int
	EtherType                        uint16
	IPProto                          uint8
	Has                              uint8 // enum dq_has of dq_rules.h
}

// ParsePacket finds the headers of an Ethernet frame, as the engine does for matching and filtering. ok is false if there is no
// complete Ethernet header.
func ParsePacket(frame []byte) (h Headers, ok bool) {
	var k C.dqi_pkt
	ok = bool(C.dqi_parse((*C.uint8_t)(first(frame)), C.uint32_t(len(frame)), &k))
	return Headers{
		L3:         offset(k.l3),
		L4:         offset(k.l4),
		Payload:    offset(k.payload),
		PayloadLen: int(k.payload_len),
		End:        int(k.end),
		EtherType:  uint16(k.ethertype),
		IPProto:    uint8(k.ip_proto),
		Has:        uint8(k.has),
	}, ok
}

func offset(c C.uint32_t) int {
	if c == C.DQI_NONE {
		return -1
	}
	return int(c)
}
