package files

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

const noTime = -1

// An ngLink is an interface of a pcapng.
type ngLink struct {
	linkType    uint16
	name, about string
	fcs         int // bytes; -1: not given
}

func ngBlock(kind uint32, body []byte) []byte {
	le := binary.LittleEndian
	body = append(body, make([]byte, -len(body)&3)...)
	size := uint32(12 + len(body))
	return le.AppendUint32(append(le.AppendUint32(le.AppendUint32(nil, kind), size), body...), size)
}

func ngOption(code uint16, value []byte) []byte {
	le := binary.LittleEndian
	out := append(le.AppendUint16(le.AppendUint16(nil, code), uint16(len(value))), value...)
	return append(out, make([]byte, -len(value)&3)...)
}

// pcapngOf is a pcapng with times in ns.
func pcapngOf(links []ngLink, packets ...harness.Captured) []byte {
	le := binary.LittleEndian
	out := ngBlock(0x0a0d0d0a, []byte("\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	for _, l := range links {
		body := le.AppendUint32(append(le.AppendUint16(nil, l.linkType), 0, 0), 0)
		if l.name != "" {
			body = append(body, ngOption(2, []byte(l.name))...)
		}
		if l.about != "" {
			body = append(body, ngOption(3, []byte(l.about))...)
		}
		if l.fcs >= 0 {
			body = append(body, ngOption(13, []byte{byte(l.fcs)})...)
		}
		out = append(out, ngBlock(1, slices.Concat(body, ngOption(9, []byte{9}), ngOption(0, nil)))...)
	}
	for _, p := range packets {
		orig := uint32(max(p.Orig, len(p.Data)))
		if p.Ns == noTime {
			out = append(out, ngBlock(3, append(le.AppendUint32(nil, orig), p.Data...))...)
			continue
		}
		var body, options []byte
		for _, v := range []uint32{uint32(p.Link), uint32(p.Ns >> 32), uint32(p.Ns), uint32(len(p.Data)), orig} {
			body = le.AppendUint32(body, v)
		}
		if p.Comment != "" {
			options = append(options, ngOption(1, []byte(p.Comment))...)
		}
		if p.Flags != 0 {
			options = append(options, ngOption(2, le.AppendUint32(nil, p.Flags))...)
		}
		if p.DropCount != 0 {
			options = append(options, ngOption(4, le.AppendUint64(nil, p.DropCount))...)
		}
		if options != nil {
			options = append(options, ngOption(0, nil)...)
		}
		out = append(out, ngBlock(6, slices.Concat(body, p.Data, make([]byte, -len(p.Data)&3), options))...)
	}
	return out
}

// recordFile records data by the command record, with more arguments; the file, what was printed, and the exit code.
func recordFile(t *testing.T, name string, data []byte, output string, args ...string) (path, out string, code int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append([]string{"record", name, "-w", output, "--summary", "full"}, args...)...)
	cmd.Dir = dir
	text, _ := cmd.CombinedOutput()
	return filepath.Join(dir, output), string(text), cmd.ProcessState.ExitCode()
}

// whatTsharkSees are the fields that a capture must keep, a line a packet.
func whatTsharkSees(t *testing.T, path string, more ...string) []string {
	t.Helper()
	return harness.TsharkLines(t, path, append([]string{"ip.id", "frame.len", "frame.cap_len", "frame.time_epoch", "udp.port"}, more...)...)
}

// TestCapturesKeepWhatIsKnown records captures, and has tshark say that packets, original lengths and times are the same; in a pcapng
// interfaces, comments, flags and drop counts, too.
func TestCapturesKeepWhatIsKnown(t *testing.T) {
	harness.Need(t, "tshark")
	const day = 1700000000 * int64(1e9)
	cut := harness.Captured{Ns: day, Data: harness.Datagram(7, 1000, true)[:96], Orig: 1042}
	links := []ngLink{{1, "eth7", "the east antenna", 4}, {1, "eth8", "", -1}, {1, "", "", -1}}
	rich := pcapngOf(links,
		harness.Captured{Ns: day, Data: harness.Datagram(1, 10, true), Comment: "first light", Flags: 1, DropCount: 7},
		harness.Captured{Ns: day + 1, Data: harness.Datagram(2, 10, true), Link: 1, Flags: 2},
		harness.Captured{Ns: day + 2, Data: harness.Datagram(3, 10, true), Comment: "first light", Flags: 1, DropCount: 7},
		harness.Captured{Ns: day + 3, Data: harness.Datagram(4, 700, true)[:60], Orig: 742, Link: 2, Comment: strings.Repeat("x", 207)})
	printed := []string{"frame.interface_name", "frame.interface_description", "frame.comment", "frame.packet_flags", "frame.drop_count"}
	for _, c := range []struct {
		name, file, output string
		data               []byte
		more               []string
	}{
		{"a snaplen, to pcap", "in.pcap", "out.pcap", harness.PcapOf(1, cut, harness.Captured{Ns: day + 5, Data: harness.Datagram(8, 3, true)}), nil},
		{"a snaplen, to pcapng", "in.pcap", "out.pcapng", harness.PcapOf(1, cut, cut), nil},
		{"the epoch, to pcap", "in.pcap", "out.pcap", harness.PcapOf(1, harness.Captured{Ns: 0, Data: harness.Datagram(1, 9, true)}, harness.Captured{Ns: 1, Data: harness.Datagram(2, 9, true)}), nil},
		{"the epoch, to pcapng", "in.pcap", "out.pcapng", harness.PcapOf(1, harness.Captured{Ns: 0, Data: harness.Datagram(1, 9, true)}), nil},
		{"without times", "in.pcapng", "out.pcapng", pcapngOf([]ngLink{{1, "", "", -1}}, harness.Captured{Ns: 0, Data: harness.Datagram(1, 9, true)},
			harness.Captured{Ns: noTime, Data: harness.Datagram(2, 9, true)}, harness.Captured{Ns: day, Data: harness.Datagram(3, 9, true)}, harness.Captured{Ns: noTime, Data: harness.Datagram(4, 9, true)}), nil},
		{"without times alone", "in.pcapng", "out.pcapng", pcapngOf([]ngLink{{1, "", "", -1}}, harness.Captured{Ns: noTime, Data: harness.Datagram(2, 9, true)}), nil},
		{"all that is recorded", "in.pcapng", "out.pcapng", rich, append(printed, "eth.dst")},
		{"all that is recorded, filtered", "in.pcapng", "out.pcapng", rich, printed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var args []string
			if strings.Contains(c.name, "filtered") {
				args = []string{"len > 1"}
			}
			path, out, code := recordFile(t, c.file, c.data, c.output, args...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			want := whatTsharkSees(t, filepath.Join(filepath.Dir(path), c.file), c.more...)
			got := whatTsharkSees(t, path, c.more...)
			if len(c.more) > 0 { // where nothing is given ours is
				for k := range want {
					want[k] = strings.Replace(want[k], "eth8\t\t", "eth8\tpcap:in.pcapng\t", 1)
					got[k] = strings.Replace(got[k], "input\tpcap:in.pcapng\t", "unknown\t\t", 1)
				}
			}
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestCaptureTimesOutside records packets of after 2106, which a pcap can't have, and reports it; a pcapng has them.
func TestCaptureTimesOutside(t *testing.T) {
	harness.Need(t, "tshark")
	const last, later = 4294967295 * int64(1e9), 7000000000 * int64(1e9)
	data := pcapngOf([]ngLink{{1, "", "", -1}}, harness.Captured{Ns: last + 5, Data: harness.Datagram(1, 9, true)}, harness.Captured{Ns: later, Data: harness.Datagram(2, 9, true)})
	for output, want := range map[string]string{"out.pcap": "4294967295.999999999", "out.pcapng": "7000000000.000000000"} {
		path, out, code := recordFile(t, "in.pcapng", data, output)
		printed := strings.Contains(out, "whose times a file of this format can't have")
		if code != 0 || printed != (output == "out.pcap") {
			t.Errorf("%s: exit code %d\n%s", output, code, out)
		}
		if got := harness.TsharkLines(t, path, "frame.time_epoch"); !slices.Equal(got, []string{"4294967295.000000005", want}) {
			t.Errorf("%s: %q", output, got)
		}
	}
}

// TestCaptureInterfaces has capinfos say what a recorded pcapng knows of its interfaces.
func TestCaptureInterfaces(t *testing.T) {
	harness.Need(t, "capinfos")
	path, out, code := recordFile(t, "in.pcapng", pcapngOf([]ngLink{{1, "eth7", "the east antenna", 4}, {1, "eth8", "", -1}},
		harness.Captured{Data: harness.Datagram(1, 10, true)}, harness.Captured{Data: harness.Datagram(2, 10, true), Link: 1}), "out.pcapng")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	facts, err := exec.Command("capinfos", "-I", path).Output()
	got := strings.Join(strings.Fields(string(facts)), " ")
	want := "Interface #0 info: Name = eth7 Description = the east antenna Encapsulation = Ethernet (1 - ether) Capture length = 262144 FCS length = 4"
	if err != nil || !strings.Contains(got, want) || strings.Count(got, "FCS length") != 1 || !strings.Contains(got, "Name = eth8") {
		t.Errorf("%v, want %s:\n%s", err, want, facts)
	}
}

// TestCaptureFilterLengths chooses packets by the length that they had, as tcpdump does.
func TestCaptureFilterLengths(t *testing.T) {
	harness.Need(t, "tshark", "tcpdump")
	var packets []harness.Captured
	for k := range 20 {
		packets = append(packets, harness.Captured{Ns: 1000 * int64(k), Data: harness.Datagram(uint16(k), 100*k, true)[:42], Orig: 42 + 100*k})
	}
	data := harness.PcapOf(1, packets...)
	for ours, theirs := range map[string]string{"greater 1000": "greater 1000", "less 300": "less 300", "len > 1000": "greater 1001", "len < 342": "less 341",
		"len == 942": "len == 942", "len > -1 << 2": "greater 0"} {
		path, out, code := recordFile(t, "in.pcap", data, "out.pcap", ours)
		if code != 0 {
			t.Fatalf("%s: exit code %d\n%s", ours, code, out)
		}
		in, want := filepath.Join(filepath.Dir(path), "in.pcap"), filepath.Join(filepath.Dir(path), "want.pcap")
		if text, err := exec.Command("tcpdump", "-r", in, "-w", want, theirs).CombinedOutput(); err != nil {
			t.Fatalf("tcpdump: %v\n%s", err, text)
		}
		if got, want := whatTsharkSees(t, path), whatTsharkSees(t, want); len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", ours, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestFiltersThatNobodyCanAnswer are refused, and say why: they are not filters that refuse everything.
func TestFiltersThatNobodyCanAnswer(t *testing.T) {
	harness.Need(t, "libpcap")
	data := harness.PcapOf(1, harness.Captured{Data: harness.Datagram(1, 9, true)})
	for filter, why := range map[string]string{"inbound": "only the kernel knows", "outbound and udp": "only the kernel knows", "ifindex 3": "ifindex asks for the kernel's interface",
		"ip broadcast": "netmask not known"} {
		path, out, code := recordFile(t, "in.pcap", data, "out.pcap", filter)
		if code != 2 || !strings.Contains(out, why) {
			t.Errorf("%s: exit code %d, want %q\n%s", filter, code, why, out)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: there is a file", filter)
		}
	}
}

// cooked is a packet of Linux's cooked form.
func cooked(hardware, protocol uint16, payload []byte) []byte {
	be := binary.BigEndian
	head := be.AppendUint16(be.AppendUint16(nil, 0), hardware)
	head = append(be.AppendUint16(head, 6), 2, 0, 0, 0, 0, 9, 0, 0)
	return append(be.AppendUint16(head, protocol), payload...)
}

// TestCaptureLinks reads what was captured on other links than Ethernet: it becomes the frame that it was, or is counted and named,
// and nothing behind it is lost.
func TestCaptureLinks(t *testing.T) {
	harness.Need(t, "tshark")
	ip := harness.Datagram(5, 20, false)
	llc := append([]byte{0x42, 0x42, 3}, make([]byte, 35)...) // a BPDU's, of the spanning tree
	bsd := func(family string) []byte { return append([]byte(family), ip...) }
	ethernet := harness.Captured{Ns: 1, Data: harness.Datagram(5, 20, true)}
	sll := func(hardware, protocol uint16, payload []byte) harness.Captured {
		return harness.Captured{Ns: 1, Data: cooked(hardware, protocol, payload), Link: 1}
	}
	cookedAnd := func(p harness.Captured) []byte {
		return pcapngOf([]ngLink{{1, "", "", -1}, {113, "", "", -1}}, ethernet, p, ethernet)
	}
	for _, c := range []struct {
		name   string
		data   []byte
		frames string // tshark's protocols of each frame
		others int
	}{
		{"BSD loopback", harness.PcapOf(0, harness.Captured{Data: bsd("\x02\x00\x00\x00")}, harness.Captured{Data: bsd("\x00\x00\x00\x02")}), "eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data", 0},
		{"OpenBSD loopback", harness.PcapOf(108, harness.Captured{Data: bsd("\x00\x00\x00\x02")}), "eth:ethertype:ip:udp:data", 0},
		{"IP", harness.PcapOf(101, harness.Captured{Data: ip}, harness.Captured{Data: []byte{0x15, 1, 2, 3}}, harness.Captured{Data: ip}), "eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data", 1},
		{"cooked", harness.PcapOf(113, harness.Captured{Data: cooked(1, 0x0800, ip)}), "eth:ethertype:ip:udp:data", 0},
		{"cooked LLC", harness.PcapOf(113, harness.Captured{Data: cooked(1, 4, llc)}), "eth:llc:stp", 0},
		{"cooked CAN", cookedAnd(sll(280, 12, make([]byte, 16))), "eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data", 1},
		{"cooked netlink", cookedAnd(sll(824, 0, make([]byte, 16))), "eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data", 1},
		{"cooked 802.11", cookedAnd(sll(803, 0x0800, make([]byte, 16))), "eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data", 1},
		{"USB among Ethernet", pcapngOf([]ngLink{{1, "", "", -1}, {220, "", "", -1}}, ethernet, harness.Captured{Ns: 1, Data: make([]byte, 64), Link: 1}, ethernet, ethernet),
			"eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data eth:ethertype:ip:udp:data", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, out, code := recordFile(t, "in.pcap", c.data, "out.pcap")
			want := 0
			if c.others > 0 {
				want = 5 // input.wire.dropped == 0
			}
			if line := fmt.Sprintf("input.wire.0.other_link: %d ", c.others); code != want || strings.Contains(out, line) != (c.others > 0) {
				t.Errorf("exit code %d, want %d and %d others\n%s", code, want, c.others, out)
			}
			if got := strings.Join(harness.TsharkLines(t, path, "frame.protocols"), " "); got != c.frames {
				t.Errorf("%s: frames %s, want %s", c.name, got, c.frames)
			}
		})
	}
	for name, data := range map[string][]byte{"802.11": harness.PcapOf(105, harness.Captured{Data: make([]byte, 64)}),
		"contains no packets that are, or can be converted to, Ethernet frames": pcapngOf([]ngLink{{220, "", "", -1}}, harness.Captured{Data: make([]byte, 64)})} {
		if _, out, code := recordFile(t, "in.pcap", data, "out.pcap"); code != 4 || !strings.Contains(out, name) {
			t.Errorf("%s alone: exit code %d\n%s", name, code, out)
		}
	}
}

// TestCutCapture reads captures that end within a record, as those of a process that was killed: all packets before it are there, and
// the exit code is the one that exit-codes.md gives to a capture that could not be read to its end.
func TestCutCapture(t *testing.T) {
	harness.Need(t, "capinfos")
	var packets []harness.Captured
	for k := range 5 {
		packets = append(packets, harness.Captured{Ns: int64(k), Data: harness.Datagram(uint16(k), 32, true)})
	}
	for name, data := range map[string][]byte{"in.pcap": harness.PcapOf(1, packets...), "in.pcapng": pcapngOf([]ngLink{{1, "", "", -1}}, packets...)} {
		record := map[string]int{"in.pcap": 16 + 74, "in.pcapng": 32 + 76}[name]
		for _, cut := range []int{1, 10, record - 1} {
			path, out, code := recordFile(t, name, data[:len(data)-cut], "out.pcap")
			want := fmt.Sprintf("it is cut off in the record at byte %d, of which %d bytes are there", len(data)-record, record-cut)
			if code != 6 || !strings.Contains(out, want) {
				t.Errorf("%s without %d bytes: exit code %d, want 6 and %q\n%s", name, cut, code, want, out)
			}
			count, err := exec.Command("capinfos", "-Mrc", path).Output()
			if fields := strings.Fields(string(count)); err != nil || len(fields) == 0 || fields[len(fields)-1] != strconv.Itoa(4) {
				t.Errorf("%s without %d bytes: capinfos: %v %s", name, cut, err, count)
			}
		}
	}
	broken := harness.PcapOf(1, packets...)
	binary.LittleEndian.PutUint32(broken[24+90+8:], 1<<30)
	want := fmt.Sprintf("at byte %d: a packet of %d bytes; %d bytes are left and not replayed", 24+90, 1<<30, len(broken)-24-90)
	if _, out, code := recordFile(t, "in.pcap", broken, "out.pcap"); code != 6 || !strings.Contains(out, want) {
		t.Errorf("a damaged record: exit code %d, want %q\n%s", code, want, out)
	}
}
