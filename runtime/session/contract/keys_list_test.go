package contract

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// keysSeen maps tests to the configuration fields whose effect they check; "-" lists fields without effect, with a reason. A new field must be added
// to a test or to the reasons.
var keysSeen = map[string]string{
	"TestKeysOfTheWire":            "Loopback.Loss Loopback.Dup Loopback.Reorder Loopback.Corrupt Loopback.DelayNS Loopback.RateBPS Queue.PacingMbps",
	"TestKeySeed":                  "Loopback.Seed",
	"TestVirtualRunsRepeat":        "Loopback.Clock",
	"TestKeysOfSupplies":           "Config.TxMetaBuffers Config.RxMetaBuffers MemoryRegion.NumBufs MemoryRegion.BufSize Queue.BatchSize",
	"TestKeyTimeout":               "Queue.TimeoutUS Queue.PollMode",
	"TestKeyCore":                  "Queue.CPUCore",
	"TestKeyFlowIsolation":         "RX.FlowIsolation",
	"TestSourceAddressIsFilledIn":  "Queue.Offloads",
	"TestHeaderDataSplit":          "Queue.MemoryRegions MemoryRegion.Name",
	"TestContractErrors":           "Queue.Name Interface.Name Interface.Engine",
	"TestContractFlows":            "Queue.ID Flow.Name Flow.ID Action.Queues",
	"TestKeyFraming":               "Framing.Fixed Framing.LengthPrefix Framing.Endianness Framing.IncludesHeader",
	"TestKeyMaxPayloadSize":        "SocketConfig.MaxPayloadSize",
	"TestKeyRetryConnect":          "SocketConfig.RetryConnectS",
	"TestKeysOfAddresses":          "SocketConfig.Mode Endpoint.Scheme Endpoint.Host Endpoint.Addr Endpoint.Port",
	"TestKeysOfAMatch":             "PortRange.First PortRange.Last Match.UDPSrc Match.UDPDst Match.TCPSrc Match.TCPDst Match.IPv4Src Match.IPv4Dst Match.IPv4Len Match.IPv6Src Match.IPv6Dst Match.VLANID Match.EtherType EthernetMatch.Src EthernetMatch.Dst FlexMatch.ItemID FlexMatch.Val FlexMatch.Mask ECPRIMatch.MsgType ECPRIMatch.ID FlexItem.ID FlexItem.Offset FlexItem.UDPDstPort",
	"TestForeignersReadOurTunnels": "Action.Type VLAN.ID VLAN.PCP VLAN.DEI VLAN.EtherType Tunnel.Type Tunnel.EthSrc Tunnel.EthDst Tunnel.IPv4Src Tunnel.IPv4Dst Tunnel.TTL Tunnel.TOS Tunnel.IPv6Src Tunnel.IPv6Dst Tunnel.HopLimit Tunnel.Class Tunnel.UDPSrc Tunnel.UDPDst Tunnel.VNI Tunnel.GREProtocol Tunnel.TNI Tunnel.FlowID",
	"TestReorderPlans":             "Reorder.Name Reorder.FlowIDs Reorder.MissingAction Reorder.MemoryRegion Reorder.Method Reorder.SequenceNumber Reorder.BatchNumber Reorder.PacketsPerBatch",
	"TestKeysOfAReorderConfig":     "Reorder.PayloadByteOffset DataTypes.InputType DataTypes.OutputType DataTypes.Endianness BitField.BitOffset BitField.BitWidth",
	"TestCardStamps":               "RX.HardwareTimestamps",
	"TestRecordBothDirections":     "RX.Outgoing",
	"TestRecordJoined":             "RX.Joined",
	"TestCardWaits":                "TX.AccurateSend",
	"TestConfiguredAnswers":        "Interface.Answers",
	"TestGnEngines":                "Config.Engine Interface.Address",
	"TestScripts":                  "Queue.TxKernel",
	"TestReplayRoundTrip":          "Replay.Speed Replay.RateBPS Replay.PPS Replay.Loops",
	"TestOwnedMemory":              "MemoryRegion.Owned",
	"TestSharedMemory":             "MemoryRegion.Shared",
	"TestOpenRefuses":              "Loopback.Mode MemoryRegion.Kind Reorder.ReorderType Reorder.ReorderEngine",

	"- says which form of the file it is":                                "Config.Version Config.StreamType",
	"- where something stands, or came from":                             "Pos.File Pos.Line Pos.Column Source.Pos Source.Path Config.File MemoryRegion.Declared Queue.DefaultTimeout",
	"- is the script's":                                                  "Config.Extra FlexItem.Name",
	"- has no effect, which the parser's report says":                    "Config.Debug SocketConfig.MaxBurstIntervalMS SocketConfig.MinIPGNS Queue.InlineData Reorder.PacketSize",
	"- is refused, or nothing serves it yet":                             "Reorder.CyclicSequence",
	"- is a hint that nothing follows":                                   "Config.MasterCore Config.LogLevel MemoryRegion.Access RX.DynamicFlowCapacity",
	"- has no test but the scripts of stdlib/api":                        "Reorder.PayloadSegment",
	"- has no test but a script of bindings":                             "Config.DrainNS",
	"TestEngineRDMA":                                                     "RoCEConfig.TransportMode",
	"TestRDMAWire":                                                       "RoCEConfig.MTU RoCEConfig.TrafficClass",
	"- has no test yet: it needs a device of several ports or addresses": "RoCEConfig.GIDIndex",
	"- needs a machine of several nodes":                                 "MemoryRegion.Affinity",
}

// fieldsOf lists the exported fields of a configuration's types, except those that contain other such types.
func fieldsOf(x reflect.Type, list map[string]bool, seen map[reflect.Type]bool) {
	if x.Kind() != reflect.Struct || seen[x] || !strings.HasSuffix(x.PkgPath(), "runtime/spec") {
		return
	}
	seen[x] = true
	for _, f := range reflect.VisibleFields(x) {
		of := f.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		inner := of.Kind() == reflect.Struct && strings.HasSuffix(of.PkgPath(), "runtime/spec")
		if len(f.Index) > 1 || !f.IsExported() {
			continue
		}
		fieldsOf(of, list, seen)
		if !inner {
			list[x.Name()+"."+f.Name] = true
		}
	}
}

// functions returns the test functions of the project.
func functions(t *testing.T) map[string]bool {
	t.Helper()
	list := map[string]bool{}
	for _, folder := range []string{".", "../../../tests/*", "../../../bindings"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				list[m[1]] = true
			}
		}
	}
	return list
}

func TestEveryKeyIsSeen(t *testing.T) {
	want, tests, have := map[string]bool{}, functions(t), map[string]string{}
	fieldsOf(reflect.TypeFor[spec.Config](), want, map[reflect.Type]bool{})
	for by, fields := range keysSeen {
		if !strings.HasPrefix(by, "- ") && !tests[by] {
			t.Errorf("there is no %s", by)
		}
		for _, field := range strings.Fields(fields) {
			if have[field] != "" {
				t.Errorf("%s is seen by %s and %s", field, have[field], by)
			}
			have[field] = by
		}
	}
	var missing []string
	for field := range want {
		if have[field] == "" {
			missing = append(missing, field)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no test is named for %v: write one that sees what the key does, and name it here", missing)
	}
}

// TestKeysOfAReorderConfig recomputes a batch's floats from the bytes of its packets, which covers positions of numbers and payloads, sample types
// and byte order.
func TestKeysOfAReorderConfig(t *testing.T) {
	const extra = `        flows:
        - {name: x, id: 1, match: {udp_dst: 7148}, action: {type: queue, id: 0}}
        reorder_configs:
        - {name: blocks, reorder_type: cpu, memory_region: batches, payload_byte_offset: 50, flow_ids: [1], %s
           method: {seq_packets_per_batch: {sequence_number: {bit_offset: 352, bit_width: 16}, packets_per_batch: 2}}}
`
	for types, sample := range map[string]func(p []byte) float32{
		"network": func(p []byte) float32 { return float32(int16(binary.BigEndian.Uint16(p))) },
		"host":    func(p []byte) float32 { return float32(int16(binary.NativeEndian.Uint16(p))) },
	} {
		rig := strings.Replace(extra, "%s", "data_types: {input_type: int16, output_type: fp32, endianness: "+types+"},", 1)
		virtualBench(t, rig, func(text string) string {
			return strings.Replace(text, "memory_regions:\n", "memory_regions:\n    - {name: batches, kind: host, affinity: 0, num_bufs: 64, buf_size: 8192}\n", 1)
		}, func(b *bench) error {
			st, err := b.s.Stage("blocks")
			if err != nil {
				return err
			}
			out, err := st.Out().Tap(b.me, nil, session.TapOptions{Policy: session.Wait})
			if err != nil {
				return err
			}
			if err := b.s.Start(b.me); err != nil {
				return err
			}
			var want []float32
			for number, order := range []int{0, 1, 3, 2} { // packets of the second batch are swapped
				frame := datagram()
				binary.BigEndian.PutUint32(frame[42:], uint32(order))
				binary.BigEndian.PutUint32(frame[44:], uint32(order)<<16)
				for i := 50; i < len(frame); i++ {
					frame[i] = byte(i*7 + order*31)
				}
				if err := b.sendFrame(frame); err != nil {
					return err
				}
				if number < 2 {
					for i := 50; i < len(frame); i += 2 {
						want = append(want, sample(frame[i:]))
					}
				}
			}
			x, err := out.Next(b.l, b.me.Now()+int64(time.Second))
			if err != nil {
				return err
			}
			p, err := x.Packet(0, 0)
			if err != nil {
				return err
			}
			var got []float32
			for i := 0; i+4 <= len(p); i += 4 {
				got = append(got, math.Float32frombits(binary.NativeEndian.Uint32(p[i:])))
			}
			if !slices.Equal(got, want) {
				t.Errorf("endianness %s: %v, want %v", types, got, want)
			}
			return nil
		})
	}
}
