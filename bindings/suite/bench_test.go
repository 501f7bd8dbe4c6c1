package suite

import (
	"fmt"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
)

// BenchmarkLua measures the cost of one expression in a script; case "nothing" is the cost of the loop.
func BenchmarkLua(b *testing.B) {
	for _, c := range []struct{ name, expr string }{
		{"nothing", "nil"},
		{"field", "burst.n"},
		{"method", "packet:u16(36)"},
		{"column", "column[1]"},
		{"set", `burst:set{ ipv4_src = "10.1.1.1" }`},
		{"set from a table at hand", "burst:set(change)"},
		{"count", `burst:count("udp_dst == 4096")`},
		{"config", "config.version"},
		{"pcall", "pcall(type, 1)"},
	} {
		b.Run(c.name, func(b *testing.B) {
			onMain(b, func(L *lua.LState, _ *bindings.Runtime) error {
				if err := L.DoString(openLoop + `s:start() burst, config, change = tx:alloc(1), s.config, { ipv4_src = "10.1.1.1" }
					burst:fill(tx:template{ payload_bytes = 64 }) packet, column = burst:packet(1), burst:column("udp_dst")`); err != nil {
					return err
				}
				b.ReportAllocs()
				b.ResetTimer()
				return L.DoString(fmt.Sprintf(`local burst, packet, column, config, change, pcall, type = burst, packet, column, config, change, pcall, type
					for _ = 1, %d do local _ = %s end`, b.N, c.expr))
			})
		})
	}
}

// BenchmarkOnBurst measures the delivery of generated bursts over the wire to a handler, per packet and per burst.
func BenchmarkOnBurst(b *testing.B) {
	start := time.Now()
	rt := onMain(b, func(L *lua.LState, _ *bindings.Runtime) error {
		return L.DoString(fmt.Sprintf(openLoop+`local n = 0
			rx:on_burst(function(b) n = n + b.n if n >= %d then s:stop("enough") end end)
			tx:transmit{ template = tx:template{ payload_bytes = 64 } } s:run{}`, b.N))
	})
	bursts, _ := rt.Shared.Sessions()[0].Ledger().Lookup("loop0.rx.bursts")
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/max(bursts, 1), "ns/burst")
}

// BenchmarkForward measures the cost of forwarding a burst in a handler: one packet circulates over the wire of a direct interface.
func BenchmarkForward(b *testing.B) {
	onMain(b, func(L *lua.LState, _ *bindings.Runtime) error {
		if err := L.DoString(openDirect + `s:start() tx:transmit{ template = tx:template{ payload_bytes = 64 }, count = 1 }`); err != nil {
			return err
		}
		b.ReportAllocs()
		b.ResetTimer()
		return L.DoString(fmt.Sprintf(`local n, last, tx, s = 0, %d, tx, s
			rx:on_burst(function(b) tx:send(b) n = n + 1 if n == last then s:stop("enough") end end)
			s:run{}`, b.N))
	})
}

const openDirect = `local daqiri = require "daqiri"
	s = daqiri.open({ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
		memory_regions = { { name = "packets", kind = "huge", affinity = 0, num_bufs = 1024, buf_size = 256 } },
		interfaces = { { name = "loop0", address = "0000:3b:00.0",
			rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = 1, memory_regions = { "packets" } } } },
			tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = 1, memory_regions = { "packets" } } } } } } } } }, { engine = "loop" })
	rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")
`
