package reorder

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"
)

// TestLayouts reads random packets of formats that no other program here knows, as their documents say where bits are,
// and compares each field with what the program reports.
func TestLayouts(t *testing.T) {
	for format, read := range map[string]func(packet []byte) map[string]uint64{"psi": psiFrame, "vdif": vdifFrame, "vrt-context": vrtContext} {
		t.Run(format, func(t *testing.T) {
			compared := map[string]int{}
			for _, p := range packetsOf(t, format, 1000) {
				packet, err := hex.DecodeString(p.Hex)
				if err != nil {
					t.Fatal(err)
				}
				want := read(packet)
				for name, v := range want {
					if got, ok := p.Fields[name]; !ok || !sameNumber(fmt.Sprint(v), fmt.Sprint(got)) && !sameNumber(fmt.Sprint(int64(v)), fmt.Sprint(got)) {
						t.Fatalf("%s: %s is %v, want %d", p.Hex, name, got, v)
					}
					compared[name]++
				}
				for name := range p.Fields {
					if _, ok := want[name]; !ok {
						t.Fatalf("%s: there is no %s", p.Hex, name)
					}
				}
			}
			for name, n := range compared {
				if n < 100 {
					t.Errorf("%s was compared %d times", name, n)
				}
			}
		})
	}
}

// psiFrame reads a frame as the struct of slsDetectorPackage's docs/src/udpheader.rst, on a little-endian machine.
func psiFrame(packet []byte) map[string]uint64 {
	var h struct {
		FrameNumber             uint64
		ExpLength, PacketNumber uint32
		DetSpec1, Timestamp     uint64
		ModID, Row, Column      uint16
		DetSpec2                uint16
		DetSpec3                uint32
		DetSpec4                uint16
		DetType, Version        uint8
	}
	_ = binary.Read(bytes.NewReader(packet), binary.LittleEndian, &h) // packets are whole
	return map[string]uint64{"frame_number": h.FrameNumber, "exp_length": uint64(h.ExpLength), "packet_number": uint64(h.PacketNumber),
		"det_spec1": h.DetSpec1, "det_time": h.Timestamp, "mod_id": uint64(h.ModID), "row": uint64(h.Row), "column": uint64(h.Column),
		"det_spec2": uint64(h.DetSpec2), "det_spec3": uint64(h.DetSpec3), "det_spec4": uint64(h.DetSpec4), "det_type": uint64(h.DetType),
		"header_version": uint64(h.Version)}
}

// vdifFrame reads words of 32 bits, whose bits count from the lowest (VDIF 1.1.1). Words 4 to 7 are not in legacy frames.
func vdifFrame(packet []byte) map[string]uint64 {
	out := map[string]uint64{}
	for _, x := range []struct {
		name             string
		word, bit, width int
	}{
		{"seconds", 0, 0, 30}, {"legacy", 0, 30, 1}, {"invalid", 0, 31, 1}, {"frame", 1, 0, 24}, {"epoch", 1, 24, 6}, {"frame_length", 2, 0, 24},
		{"log2_channels", 2, 24, 5}, {"vdif_version", 2, 29, 3}, {"station", 3, 0, 16}, {"thread", 3, 16, 10}, {"bits_minus_1", 3, 26, 5},
		{"complex", 3, 31, 1}, {"extended0", 4, 0, 24}, {"edv", 4, 24, 8}, {"extended1", 5, 0, 32}, {"extended2", 6, 0, 32}, {"extended3", 7, 0, 32},
	} {
		if x.word < 4 || out["legacy"] == 0 {
			out[x.name] = uint64(binary.LittleEndian.Uint32(packet[4*x.word:])>>x.bit) & (1<<x.width - 1)
		}
	}
	return out
}

// vrtContext walks a context packet: the prologue, then, from the highest bit of the indicators to the lowest, the fields
// with as many bytes as Wireshark's packet-vrt.c has for the bit (context_size_cif0).
func vrtContext(packet []byte) map[string]uint64 {
	head, at := binary.BigEndian.Uint32(packet), 0
	next := func(n int) (v uint64) {
		for _, b := range packet[at : at+n] {
			v = v<<8 | uint64(b)
		}
		at += n
		return v
	}
	next(4)
	out := map[string]uint64{"packet_type": uint64(head >> 28), "has_class_id": uint64(head >> 27 & 1), "tsm": uint64(head >> 24 & 1),
		"tsi": uint64(head >> 22 & 3), "tsf": uint64(head >> 20 & 3), "packet_count": uint64(head >> 16 & 15), "packet_words": uint64(head & 0xffff)}
	out["stream_id"] = next(4)
	if out["has_class_id"] == 1 {
		next(1)
		out["class_oui"], out["info_class"], out["packet_class"] = next(3), next(2), next(2)
	}
	if out["tsi"] != 0 {
		out["integer_time"] = next(4)
	}
	if out["tsf"] != 0 {
		out["fractional_time"] = next(8)
	}
	out["indicators"] = next(4)
	names := map[int]string{30: "reference_point", 29: "bandwidth", 28: "if_frequency", 27: "rf_frequency", 26: "rf_frequency_offset",
		25: "if_band_offset", 24: "reference_level", 22: "over_range_count", 21: "sample_rate", 20: "time_adjustment", 19: "time_calibrated",
		18: "temperature", 16: "state_events"}
	signed := func(v uint64) uint64 { return uint64(int64(int16(v))) }
	for bit := 30; bit >= 15; bit-- {
		if out["indicators"]>>bit&1 == 0 {
			continue
		}
		switch bit {
		case 24, 18:
			next(2)
			out[names[bit]] = signed(next(2))
		case 23:
			out["gain2"], out["gain1"] = signed(next(2)), signed(next(2))
		case 17:
			next(1)
			out["manufacturer_oui"] = next(3)
			next(2)
			out["device_code"] = next(2)
		case 30, 22, 19, 16:
			out[names[bit]] = next(4)
		case 15:
			payloadFormat(out, next(8))
		default:
			out[names[bit]] = next(8)
		}
	}
	return out
}

// payloadFormat adds the fields of a payload format to out, from the lowest bit on.
func payloadFormat(out map[string]uint64, v uint64) {
	for _, f := range []struct {
		name string
		bits int
	}{{"vector_size", 16}, {"repeat_count", 16}, {"item_size", 6}, {"packing_field_size", 6}, {"item_fraction_size", 4}, {"channel_tag_size", 4},
		{"event_tag_size", 3}, {"repeat_indicator", 1}, {"data_item_format", 5}, {"real_complex", 2}, {"packing_method", 1}} {
		out[f.name] = v & (1<<f.bits - 1)
		v >>= f.bits
	}
}
