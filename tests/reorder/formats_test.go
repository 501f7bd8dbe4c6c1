package reorder

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// formatPackets prints packets of a format with what the program reports of each, a line of JSON each.
const formatPackets = `
local daqiri = require "daqiri"
local args = daqiri.args{ format = "", n = 0, seed = 1 }
local f = daqiri.format(args.format)
for _, v in ipairs(f:vectors{ n = args.n, seed = args.seed }) do
  print(daqiri.json{ hex = daqiri.hex(v.bytes), fields = v.fields })
end
`

// formatPacket is one of these lines.
type formatPacket struct {
	Hex    string
	Fields map[string]any
}

// packetsOf runs formatPackets.
func packetsOf(t *testing.T, format string, n int) []formatPacket {
	t.Helper()
	script := filepath.Join(t.TempDir(), "packets.lua")
	if err := os.WriteFile(script, []byte(formatPackets), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(harness.Built(t), "--summary", "none", script, "--format", format, "--n", fmt.Sprint(n)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []formatPacket
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	for dec.More() {
		var p formatPacket
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) != n {
		t.Fatalf("%d packets, want %d", len(list), n)
	}
	return list
}

// A wrap is what packets of a capture lie in: UDP to a port, IPv4 of a protocol, or Ethernet of a type. Without, they are
// frames.
type wrap struct{ port, proto, ethertype int }

// framesAround writes a capture of the packets.
func framesAround(t *testing.T, packets []formatPacket, w wrap) string {
	t.Helper()
	be := binary.BigEndian
	out := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	out = append(out, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for _, p := range packets {
		body, err := hex.DecodeString(p.Hex)
		if err != nil {
			t.Fatal(err)
		}
		w := w
		if w.port != 0 {
			udp := be.AppendUint16([]byte{0x20, 1}, uint16(w.port))
			body, w.proto = append(append(be.AppendUint16(udp, uint16(8+len(body))), 0, 0), body...), 17
		}
		if w.proto != 0 {
			ip := be.AppendUint16([]byte{0x45, 0}, uint16(20+len(body)))
			ip = append(ip, 0, 1, 0x40, 0, 64, byte(w.proto), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
			body, w.ethertype = append(ip, body...), 0x0800
		}
		if w.ethertype != 0 {
			body = append(be.AppendUint16([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, uint16(w.ethertype)), body...)
		}
		out = append(out, 0, 0, 0, 0, 0, 0, 0, 0)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
		out = append(out, body...)
	}
	file := filepath.Join(t.TempDir(), "packets.pcap")
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// dissected are fields of each packet as tshark reports them, with commas where there are several.
func dissected(t *testing.T, fields []string, args ...string) []map[string]string {
	t.Helper()
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command("tshark", append(args, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a")...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil || strings.Contains(problems.String(), "Lua") {
		t.Fatalf("tshark: %v\n%s", err, problems.String())
	}
	var list []map[string]string
	for line := range strings.Lines(string(out)) {
		row := map[string]string{}
		for i, v := range strings.Split(strings.TrimRight(line, "\n"), "|") {
			row[fields[i]] = v
		}
		list = append(list, row)
	}
	return list
}

// sameNumbers is sameNumber of lists.
func sameNumbers(got, want string) bool {
	return slices.EqualFunc(strings.Split(got, ","), strings.Split(want, ","), sameNumber)
}

// sameNumber reports whether tshark's text is our value.
func sameNumber(got, text string) bool {
	if got == text {
		return true
	}
	a, err := strconv.ParseInt(got, 0, 64)
	b, err2 := strconv.ParseInt(text, 10, 64)
	if err == nil && err2 == nil {
		return a == b
	}
	c, err := strconv.ParseUint(got, 0, 64)
	d, err2 := strconv.ParseUint(text, 10, 64)
	return err == nil && err2 == nil && c == d
}

// notInUDP names where headers are that are not UDP payloads.
var notInUDP = map[string]struct {
	wrap
	as string // for tshark's -d
}{
	"ethernet": {}, "vlan": {},
	"arp": {wrap{ethertype: 0x0806}, "ethertype==0x0806"}, "ipv4": {wrap{ethertype: 0x0800}, "ethertype==0x0800"},
	"ipv6": {wrap{ethertype: 0x86dd}, "ethertype==0x86dd"},
	"icmp": {wrap{proto: 1}, "ip.proto==1"}, "tcp": {wrap{proto: 6}, "ip.proto==6"}, "udp": {wrap{proto: 17}, "ip.proto==17"},
}

// TestDissectors has tshark show random packets of each format of the library with the dissector that the program writes,
// and compares every field, and which there are.
func TestDissectors(t *testing.T) {
	harness.Need(t, "tshark")
	files, err := filepath.Glob(filepath.Join(tree.Root, "stdlib/formats/*.lua"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		format := strings.TrimSuffix(filepath.Base(file), ".lua")
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "dissector.lua")
			text, err := exec.Command(harness.Built(t), "dissector", format).Output()
			if err == nil {
				err = os.WriteFile(script, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			packets := packetsOf(t, format, 40)
			proto, names := "daqiri_"+strings.ReplaceAll(format, "-", "_"), map[string]bool{}
			for _, p := range packets {
				flatten(p.Fields)
				for name := range p.Fields {
					names[name] = true
				}
			}
			fields := []string{luaError}
			for name := range names {
				fields = append(fields, proto+"."+name)
			}
			in, other := notInUDP[format]
			if !other {
				in.wrap, in.as = wrap{port: 4015}, "udp.port==4015"
			}
			args := []string{"-X", "lua_script:" + script, "-r", framesAround(t, packets, in.wrap)}
			if in.as != "" {
				args = append(args, "-d", in.as+","+proto)
			}
			rows := dissected(t, fields, args...)
			for i, p := range packets {
				if rows[i][luaError] != "" {
					t.Fatalf("packet %d, %s: %s", i+1, p.Hex, rows[i][luaError])
				}
				for name := range names {
					got, want := rows[i][proto+"."+name], p.Fields[name]
					if want == nil && got != "" || want != nil && !sameNumbers(got, fmt.Sprint(want)) {
						t.Fatalf("packet %d, %s: %s is %q for tshark, %v for us", i+1, p.Hex, name, got, want)
					}
				}
			}
		})
	}
}

// flatten makes the fields of a list's items fields of their own, of which tshark reports all values.
func flatten(fields map[string]any) {
	for list, v := range fields {
		if _, empty := v.(map[string]any); empty { // as a table without elements is written
			delete(fields, list)
		}
		items, ok := v.([]any)
		if !ok {
			continue
		}
		delete(fields, list)
		all := map[string][]string{}
		for _, one := range items {
			for name, v := range one.(map[string]any) {
				all[name] = append(all[name], fmt.Sprint(v))
			}
		}
		for name, values := range all {
			fields[list+"."+name] = strings.Join(values, ",")
		}
	}
}

// luaError is tshark's field of what went wrong in a dissector.
const luaError = "_ws.lua.error"

// TestFormatsAgree compares fields of random packets with those of Wireshark's own dissectors. Not with its format of extended
// GVSP, which has the bit of the extension, and not of VRT commands, which Wireshark 4.0 doesn't know. layout_test.go has
// the formats, and the fields of context packets, that it doesn't know.
func TestFormatsAgree(t *testing.T) {
	harness.Need(t, "tshark")
	leader := map[string]string{"field_id": "gvsp.fieldid", "field_count": "gvsp.fieldcount", "payload_type": "gvsp.payloadtype",
		"timestamp": "gvsp.timestamp", "pixel_format": "gvsp.pixel", "size_x": "gvsp.sizex", "size_y": "gvsp.sizey", "offset_x": "gvsp.offsetx",
		"offset_y": "gvsp.offsety", "padding_x": "gvsp.paddingx", "padding_y": "gvsp.paddingy"}
	with := func(a, b map[string]string) map[string]string {
		maps.Copy(b, a)
		return b
	}
	for _, c := range []struct {
		format          string
		port, ethertype int
		as              string
		theirs          map[string]string // by our name
	}{
		{"vrt", 4991, 0, "vrt", map[string]string{"packet_count": "vrt.seq", "packet_words": "vrt.len", "stream_id": "vrt.sid", "class_oui": "vrt.oui",
			"info_class": "vrt.icc", "packet_class": "vrt.pcc", "tsi": "vrt.tsi", "tsf": "vrt.tsf", "integer_time": "vrt.ts_int"}},
		{"vrt-context", 4991, 0, "vrt", map[string]string{"packet_count": "vrt.seq", "packet_words": "vrt.len", "stream_id": "vrt.sid",
			"class_oui": "vrt.oui", "tsm": "vrt.tsmflag", "tsi": "vrt.tsi", "tsf": "vrt.tsf", "integer_time": "vrt.ts_int"}},
		{"ecpri", 0, 0xaefe, "", map[string]string{"ecpri_revision": "ecpri.revision", "ecpri_type": "ecpri.type", "ecpri_size": "ecpri.size",
			"pc_id": "ecpri.pcid", "seq_id": "ecpri.seqid", "rtc_id": "ecpri.rtcid", "rtc_seq_id": "ecpri.seqid", "generic_pc_id": "ecpri.pcid",
			"generic_seq_id": "ecpri.seqid"}},
		{"gvsp", 4015, 0, "gvsp", with(leader, map[string]string{"status": "gvsp.status", "block_id": "gvsp.blockid16", "packet_id": "gvsp.packetid24",
			"packet_format": "gvsp.format"})},
		{"gvsp-64", 4015, 0, "gvsp", with(leader, map[string]string{"status": "gvsp.status", "flags": "gvsp.flags", "block_id": "gvsp.blockid64",
			"packet_id": "gvsp.packetid32"})},
		{"rtp", 5004, 0, "rtp", map[string]string{"version": "rtp.version", "padding": "rtp.padding", "extension": "rtp.ext", "csrc_count": "rtp.cc",
			"marker": "rtp.marker", "payload_type": "rtp.p_type", "sequence_number": "rtp.seq", "timestamp": "rtp.timestamp", "ssrc": "rtp.ssrc",
			"extension_words": "rtp.ext.len"}},
		{"arp", 0, 0x0806, "", map[string]string{"operation": "arp.opcode", "sender_mac": "arp.src.hw_mac", "sender_ip": "arp.src.proto_ipv4",
			"target_mac": "arp.dst.hw_mac", "target_ip": "arp.dst.proto_ipv4"}},
		{"ipv6", 0, 0x86dd, "", map[string]string{"flow_label": "ipv6.flow", "hop_limit": "ipv6.hlim", "payload_length": "ipv6.plen", "source": "ipv6.src",
			"destination": "ipv6.dst", "traffic_class": "ipv6.tclass"}},
		{"ipv4", 0, 0x0800, "", map[string]string{"total_length": "ip.len", "identification": "ip.id", "time_to_live": "ip.ttl", "protocol": "ip.proto",
			"source": "ip.src", "destination": "ip.dst", "dscp": "ip.dsfield.dscp", "header_checksum": "ip.checksum"}},
	} {
		t.Run(c.format, func(t *testing.T) {
			t.Parallel()
			var fields []string
			for _, f := range c.theirs {
				fields = append(fields, f)
			}
			packets := packetsOf(t, c.format, 2000)
			args := []string{"--disable-protocol", "oran_fh_cus", "-r", framesAround(t, packets, wrap{port: c.port, ethertype: c.ethertype})}
			if c.as != "" {
				args = append(args, "-d", fmt.Sprintf("udp.port==%d,%s", c.port, c.as))
			}
			compared := map[string]int{}
			for i, row := range dissected(t, fields, args...) {
				if kind, err := strconv.Atoi(fmt.Sprint(packets[i].Fields["packet_type"])); err == nil && kind > 5 {
					continue
				}
				for ours, theirs := range c.theirs {
					got, want := row[theirs], packets[i].Fields[ours]
					if got == "" || want == nil { // one of a random type that only one of both looks into
						continue
					}
					compared[ours]++
					if first, _, _ := strings.Cut(got, ","); !sameNumber(first, fmt.Sprint(want)) {
						t.Fatalf("packet %d, %s: %s is %v, and Wireshark's %s %s", i+1, packets[i].Hex, ours, want, theirs, got)
					}
				}
			}
			for ours := range c.theirs {
				if compared[ours] == 0 {
					t.Errorf("%s was never compared", ours)
				}
			}
		})
	}
}
