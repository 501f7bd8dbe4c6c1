package manual

import (
	"strings"

	"github.com/daqiri/daqiri-run/runtime/session/words"
)

// Fields describes the field names of conditions and columns.
var Fields = Topic{Name: "fields", Short: "the fields of packets", Parts: fieldParts}

func fieldParts() []Part {
	fields := &Table{Columns: []string{"field", "bits", "what it is"}}
	for _, w := range words.Fields() {
		fields.Rows = append(fields.Rows, []string{"`" + w.Name + "`", w.Unit, w.Text})
	}
	return []Part{
		{Words: "Names for conditions (`s:filter{ where = … }`), columns (`b:column(name)`), changes (`b:set(name, v)`) and templates. A packet that " +
			"has no such header has no such field: a comparison with it is false. A format (`daqiri.format`) adds names of its own, and a table gives a " +
			"place directly: `{ at = \"payload\", bit_offset = 0, bit_width = 48 }`."},
		{Table: fields},
	}
}

var examples = []string{
	"udp_dst == 7148 and len > 1000",
	"ipv4_src in 10.0.0.0/8 or ipv6_src in 2001:db8::/32",
	"tcp_flags & 0x12 == 0x02",
	"rx_port.rx.dropped == 0 and rx_port.rx.bps > 9Gbit/s",
}

// Conditions describes the grammar of conditions and numbers.
var Conditions = Topic{Name: "conditions", Short: "conditions and numbers written as text", Parts: conditionParts}

func conditionParts() []Part {
	return []Part{
		{Words: "One grammar for filters (`where`), place rules, thresholds and `abort`. It is checked where it is written and runs natively."},
		{Head: "operators"},
		{Words: "Lua's (5.3), those that bind least first; all but `^` associate to the left:"},
		{Lines: "or\nand\n== ~= != < <= > >= in\n|\n~                 exclusive or\n&\n<< >>\n+ -\n* / // %\nnot - ~           unary\n^                 power: 2^3^2 is 2^9"},
		{Words: "`in` takes a prefix: `ipv4_src in 10.0.0.0/8`. `/` and `^` of fields are refused: packets are compared in whole numbers of 64 bits, " +
			"which wrap; `//` and `%` round towards minus infinity."},
		{Head: "operands"},
		{Table: &Table{[]string{"operand", "examples"}, [][]string{
			{"numbers", "`7148` `0x1be4` `1e-6`"},
			{"with a unit", "`10Gbit/s` `8KiB` `2us`: bits per second, bytes, ns"},
			{"addresses", "`10.0.0.1` `2001:db8::1` `02:00:5e:10:00:00`"},
			{"fields of packets", "`udp_dst`, see `daqiri-run help fields`"},
			{"figures, in thresholds", "`rx_port.rx.dropped` `tx_port.tx.gap_error.p99`"},
		}}},
		{Words: "Units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024); ns, us, ms, s."},
		{Head: "what is not there"},
		{Words: "A comparison with a field that the packet has not got is false, so `not (udp_dst == 53)` holds for a packet without UDP and " +
			"`udp_dst ~= 53` does not."},
		{Head: "thresholds"},
		{Words: "A threshold, `s:threshold(condition, {after, abort})`, is a condition on figures of the ledger (`daqiri-run help ledger`) and on those of " +
			"`s:metric` that a run has to meet: `rx_port.rx.dropped == 0`. It is judged at the end; the run ends with exit code 5 where one has not passed. " +
			"With `abort` it is judged while the session runs, too, from `after` seconds on, and ends a run that does not meet it."},
		{Words: "A figure without a value makes what depends on it unknown: `false and unknown` is false, `true or unknown` is true, and a threshold " +
			"that stays unknown has not passed."},
		{Head: "examples"},
		{Lines: strings.Join(examples, "\n")},
	}
}
