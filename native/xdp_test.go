package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/daqiri/daqiri-run/tests/require"
)

// load returns an unattached program, or skips the test.
func load(t *testing.T) *steering {
	t.Helper()
	s, err := loadSteering()
	if err != nil {
		require.Lack(t, "xdp", fmt.Sprintf("the kernel does not take the eBPF program: %+v", err))
	}
	t.Cleanup(s.close)
	s.isolate(true)
	s.run(true)
	return s
}

// ours runs the program on a frame. Without a socket in its map it passes selected frames, and counts them.
func (s *steering) ours(t *testing.T, frame []byte) bool {
	t.Helper()
	before := s.counts()
	if _, err := s.objects.Program.Run(&ebpf.RunOptions{Data: frame}); err != nil {
		t.Fatal(err)
	}
	after := s.counts()
	if after.Ours+after.Passed+after.Dropped != before.Ours+before.Passed+before.Dropped+1 {
		t.Fatalf("counted %+v after %+v", after, before)
	}
	return after.Ours+after.Dropped > before.Ours+before.Dropped
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// The value ranges are small, so that rules and frames often match.
func randomAddr4(r *rand.Rand) uint32 { return 0x0a000000 | uint32(r.IntN(3)) }
func randomPort(r *rand.Rand) uint16  { return pick[uint16](r, 4000, 4001, 7148) }
func randomMAC(r *rand.Rand) [6]byte  { return [6]byte{2, 0, 0, 0, 0, byte(r.IntN(3))} }
func randomAddr6(r *rand.Rand) [16]byte {
	return [16]byte{0xfd, 8: byte(r.IntN(2)), 15: byte(r.IntN(3))}
}

func randomRange(r *rand.Rand) PortRange {
	lo := randomPort(r)
	return PortRange{lo, lo + pick[uint16](r, 0, 0, 1, 3000)}
}

func randomRule(r *rand.Rand) Rule {
	sets := []MatchSet{MatchEthSrc, MatchEthDst, MatchEtherType, MatchVLANID, MatchIPProto, MatchIPv4Src, MatchIPv4Dst,
		MatchIPv4Len, MatchIPv6Src, MatchIPv6Dst, MatchUDPSrc, MatchUDPDst, MatchTCPSrc, MatchTCPDst, MatchFlex,
		MatchECPRI, MatchECPRIType, MatchECPRIType | MatchECPRIID}
	m := Match{
		IPv4Src: randomAddr4(r), IPv4SrcMask: pick[uint32](r, 0xffffffff, 0xffffff00, 0),
		IPv4Dst: randomAddr4(r), IPv4DstMask: pick[uint32](r, 0xffffffff, 0xffff00ff),
		FlexVal: uint32(r.IntN(4)) << 8, FlexMask: pick[uint32](r, 0xff00, 0x300), FlexOffset: uint16(r.IntN(20)),
		FlexUDPDst: pick[uint16](r, 0, 4000),
		EtherType:  pick[uint16](r, 0x0800, 0x86dd, 0xaefe, 0x8100), VLANID: uint16(r.IntN(3)),
		IPv4Len: uint16(40 + r.IntN(20)), ECPRIID: uint16(r.IntN(3)), ECPRIType: uint8(r.IntN(3)),
		UDPSrc: randomRange(r), UDPDst: randomRange(r), TCPSrc: randomRange(r), TCPDst: randomRange(r),
		EthSrc: randomMAC(r), EthDst: randomMAC(r), IPv6Src: randomAddr6(r), IPv6Dst: randomAddr6(r),
		IPv6SrcPrefix: pick[uint8](r, 0, 64, 65, 128), IPv6DstPrefix: pick[uint8](r, 8, 128),
		IPProto: pick[uint8](r, 1, 6, 17, 58),
	}
	for n := 1 + r.IntN(3); n > 0; n-- {
		m.Set |= pick(r, sets...)
	}
	return Rule{Match: m, FlowID: 1, NQueues: 1}
}

// acceptedRules returns n rules that the classifier accepts, with distinct orders.
func acceptedRules(r *rand.Rand, n int) []Rule {
	var rules []Rule
	for len(rules) < n {
		rule := randomRule(r)
		rule.Order = uint64(len(rules))
		if _, err := WantedBy([]Rule{rule}, nil); err == nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

func randomL4(r *rand.Rand, proto byte) []byte {
	payload := make([]byte, r.IntN(40))
	for i := range payload {
		payload[i] = byte(r.IntN(4))
	}
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, randomPort(r)), randomPort(r))
	switch proto {
	case 17:
		length := pick(r, 8+len(payload), 8+len(payload), 0, 5, 9, 2000)
		return slices.Concat(ports, []byte{byte(length >> 8), byte(length), 0, 0}, payload)
	case 6:
		return slices.Concat(ports, make([]byte, 8), []byte{pick[byte](r, 5, 5, 6, 15, 4) << 4, 0x10, 0, 0, 0, 0, 0, 0}, payload)
	}
	return payload
}

func randomIPv4(r *rand.Rand) []byte {
	proto := pick[byte](r, 17, 17, 17, 6, 6, 1, 47)
	options := make([]byte, 4*pick(r, 0, 0, 0, 1, 10))
	body := append(options, randomL4(r, proto)...)
	total := pick(r, 20+len(body), 20+len(body), 20+len(body), 0, 24, 19, 3000)
	h := []byte{pick[byte](r, 4, 4, 4, 4, 4, 4, 6)<<4 | byte(5+len(options)/4), 0, byte(total >> 8), byte(total), 0, 0,
		pick[byte](r, 0, 0x40, 0x20, 0, 0x1f), pick[byte](r, 0, 0, 0, 1), 64, proto, 0, 0}
	h = binary.BigEndian.AppendUint32(h, randomAddr4(r))
	return append(binary.BigEndian.AppendUint32(h, randomAddr4(r)), body...)
}

func randomIPv6(r *rand.Rand) []byte {
	next := pick[byte](r, 17, 17, 6, 58, 59)
	body := randomL4(r, next)
	for n := pick(r, 0, 0, 1, 2, 3, 8, 9); n > 0; n-- {
		kind := pick[byte](r, 0, 43, 44, 51, 60, 135)
		size := byte(r.IntN(3))
		bytes := map[byte]int{44: 8, 51: (int(size) + 2) * 4}[kind]
		if bytes == 0 {
			bytes = (int(size) + 1) * 8
		}
		h := make([]byte, max(bytes, 8))
		h[0], h[1] = next, size
		if kind == 44 {
			h[2], h[3] = pick[byte](r, 0, 0, 1), pick[byte](r, 0, 1, 8)
		}
		body, next = append(h[:bytes:bytes], body...), kind
	}
	length := pick(r, len(body), len(body), len(body), 0, 10, 3000)
	src, dst := randomAddr6(r), randomAddr6(r)
	return slices.Concat([]byte{0x60, 0, 0, 0, byte(length >> 8), byte(length), next, 64}, src[:], dst[:], body)
}

func randomFrame(r *rand.Rand) []byte {
	dst, src := randomMAC(r), randomMAC(r)
	f := slices.Concat(dst[:], src[:])
	for n := pick(r, 0, 0, 0, 1, 2, 3); n > 0; n-- {
		f = append(f, pick[byte](r, 0x81, 0x88), 0, byte(r.IntN(256)), byte(r.IntN(3)))
		if f[len(f)-4] == 0x88 {
			f[len(f)-3] = 0xa8
		}
	}
	switch r.IntN(8) {
	case 0:
		f = append(f, 0xae, 0xfe, 0x10, byte(r.IntN(4)), 0, 4, 0, byte(r.IntN(3)), 0, 0)
	case 1, 2, 3:
		f = append(append(f, 0x86, 0xdd), randomIPv6(r)...)
	default:
		f = append(append(f, 0x08, 0x00), randomIPv4(r)...)
	}
	switch r.IntN(6) {
	case 0: // truncated
		f = f[:r.IntN(len(f)+1)]
	case 1: // padded
		f = append(f, make([]byte, r.IntN(30))...)
	}
	return f
}

// TestSteerAgrees checks that the kernel's program selects exactly the frames that the user-space classifier selects.
func TestSteerAgrees(t *testing.T) {
	s := load(t)
	r := rand.New(rand.NewPCG(1, 2))
	wanted, total, refused := 0, 0, 0
	var rules []Rule
	for range 150 {
		cut := r.IntN(len(rules) + 1)
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		add := acceptedRules(r, pick(r, 0, 1, 3, 10, 40, 300))
		s.drop(r.IntN(2) == 0)
		if err := s.change(rules[cut:], add); errors.Is(err, ErrNoSpace) {
			refused++ // nothing has changed
		} else if err != nil {
			t.Fatal(err)
		} else {
			rules = append(rules[:cut], add...)
		}
		for k := range rules {
			rules[k].Order = uint64(k) // for WantedBy
		}
		for range 150 {
			f := randomFrame(r)
			if len(f) < 14 {
				continue // shorter than any frame of a device
			}
			want, err := WantedBy(rules, f)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.ours(t, f); got != want {
				t.Fatalf("ours %v, want %v: % x\nrules: %+v", got, want, f, rules)
			}
			total++
			if want {
				wanted++
			}
		}
	}
	t.Logf("%d of %d frames were wanted, %d changes refused", wanted, total, refused)
	if wanted < total/10 || wanted > total*9/10 {
		t.Errorf("%d of %d frames were wanted: the test compares too little", wanted, total)
	}
}

// frame is a UDP packet over IPv4 with eight bytes of payload.
var frame = []byte("\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00" +
	"\x45\x00\x00\x24\x00\x01\x00\x00\x40\x11\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02" +
	"\x0f\xa0\x1b\xec\x00\x10\x00\x00payload!")

// TestSteerChanges removes any of many rules; a rejected change must leave all as it was.
func TestSteerChanges(t *testing.T) {
	s := load(t)
	port := func(n int) Rule {
		p := uint16(n)
		return Rule{Match: Match{Set: MatchUDPDst, UDPDst: PortRange{p, p}}, FlowID: uint32(n), NQueues: 1}
	}
	span := func(n int) Rule {
		p := uint16(n)
		return Rule{Match: Match{Set: MatchUDPDst, UDPDst: PortRange{p, p + 1}}, FlowID: uint32(n), NQueues: 1}
	}
	to := func(n uint16) []byte {
		f := slices.Clone(frame)
		binary.BigEndian.PutUint16(f[36:], n)
		return f
	}
	var many []Rule
	for n := range 5000 {
		many = append(many, port(n))
	}
	change := func(gone, add []Rule) {
		t.Helper()
		if err := s.change(gone, add); err != nil {
			t.Fatal(err)
		}
	}
	change(nil, many)
	change(many[17:18], nil)
	change(nil, many[16:17]) // two rules for one port, one of which is removed again
	change(many[16:17], nil)
	for n, want := range map[uint16]bool{16: true, 17: false, 4999: true, 5000: false} {
		if got := s.ours(t, to(n)); got != want {
			t.Errorf("port %d: ours %v", n, got)
		}
	}
	var spans []Rule
	for n := range 257 {
		spans = append(spans, span(6000+3*n))
	}
	left := slices.Delete(slices.Clone(many), 17, 18)
	err := s.change(left, spans)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "at most 256 flows with port ranges") {
		t.Errorf("257 port ranges: %v", err)
	}
	if !s.ours(t, to(16)) || s.ours(t, to(6000)) {
		t.Error("what was refused has changed something")
	}
	change(left, spans[:256])
	if s.ours(t, to(16)) || !s.ours(t, to(6000+3*255+1)) {
		t.Error("the port ranges are not there")
	}
	change(spans[:100], nil)
	if s.ours(t, to(6000)) || !s.ours(t, to(6000+3*100)) {
		t.Error("the wrong port ranges are gone")
	}
	change(spans[100:256], nil)
	if s.ours(t, to(6000+3*100)) {
		t.Error("without rules nothing is ours")
	}
	if s.isolate(false); !s.ours(t, to(1)) {
		t.Error("not isolated, everything is ours")
	}
}
