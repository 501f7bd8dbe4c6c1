package check

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	luavalue "github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// parser returns an error for an invalid string in a call.
type parser func(w *walker, c *callee, text string) error

// parserOf returns the parser of a named string type; nil: any string is valid.
func parserOf(kind string) parser {
	switch kind {
	case "condition":
		return condition
	case "duration":
		return func(_ *walker, _ *callee, text string) error { return luavalue.ReadDuration(lua.LString(text)) }
	case "expression":
		return expression
	case "field_name":
		return fieldName
	case "format_name":
		return func(w *walker, _ *callee, text string) error { _, err := w.formatNamed(text); return err }
	case "interface_name":
		return interfaceNamed
	case "queue_name":
		return queueNamed
	case "rate":
		return unitOf("bit/s", spec.ParseRate)
	case "region_name":
		return regionNamed
	case "size":
		return unitOf("B", spec.ParseSize)
	case "stage_name":
		return stageNamed
	case "threshold":
		return threshold
	}
	return nil
}

func unitOf(base string, parse func(string) (int64, error)) parser {
	return func(_ *walker, _ *callee, text string) error {
		_, err := parse(text)
		return spec.OrNumber(err, base)
	}
}

// condition checks the syntax, and the names if the call's format is known.
func condition(w *walker, c *callee, text string) error {
	fields, known := w.fieldsOf(c)
	return session.CheckCondition(text, fields, known)
}

func expression(w *walker, c *callee, text string) error {
	fields, known := w.fieldsOf(c)
	return session.CheckNumber(text, fields, known)
}

func fieldName(w *walker, c *callee, text string) error {
	if known, all := w.fieldNames(c); all && !slices.Contains(known, text) {
		return errors.New(unknown("field", text, known))
	}
	return nil
}

// fieldsOf returns the fields that strings of a call may name in addition to the standard fields; known: the list is complete.
func (w *walker) fieldsOf(c *callee) (fields session.Fields, known bool) {
	var own []string
	if e, sure := c.argument("fields"); hasOption(c.row, "batch") || hasOption(c.row, "id") { // reorder and heaps accept further names
		t, ok := e.(*ast.TableExpr)
		if e != nil && !ok || !sure {
			return nil, false
		}
		if t != nil {
			for _, f := range t.Fields {
				if key, ok := f.Key.(*ast.StringExpr); ok {
					own = append(own, key.Value)
				}
			}
		}
	}
	e, sure := c.argument("format")
	if !sure {
		return nil, false
	}
	if e != nil {
		v := w.infer(e, c.s)
		switch {
		case v.constant == lua.LNil:
		case v.constant != nil && !v.byUser:
			fields, _ = w.formatNamed(v.constant.String())
		default:
			fields = v.fields
		}
		if fields == nil && v.constant != lua.LNil {
			return nil, false
		}
	}
	if len(own) > 0 {
		return session.WithNames(own, fields), true
	}
	return fields, true
}

// fieldNames returns all field names that a call accepts.
func (w *walker) fieldNames(c *callee) (list []string, known bool) {
	fields, known := w.fieldsOf(c)
	list = session.FieldNames()
	for _, name := range list {
		if whole, ok := strings.CutSuffix(name, "_hi"); ok { // from IPv6 addresses
			list = append(list, whole)
		}
	}
	if fields != nil {
		list = append(list, fields.Names()...)
	}
	return list, known
}

func interfaceNamed(_ *walker, c *callee, text string) error {
	cfg := c.self.cfg
	if cfg == nil || cfg.Interface(text) != nil {
		return nil
	}
	var known []string
	for _, i := range cfg.Interfaces {
		known = append(known, i.Name)
	}
	return errors.New(unknown("interface", text, known))
}

// queueNamed checks a queue name or id for the call's interface and direction.
func queueNamed(w *walker, c *callee, text string) error {
	i := w.interfaceOf(c)
	if i == nil || w.names.otherQueues || w.walk != walkFaults {
		return nil
	}
	var known []string
	for _, q := range queuesOf(c, i) {
		if q.Name == text || strconv.Itoa(q.ID) == text {
			return nil
		}
		known = append(known, q.Name)
	}
	return fmt.Errorf("interface %s: %s", i.Name, unknown("queue", text, known))
}

// interfaceOf returns the interface that a call names, or the only one; nil: unknown.
func (w *walker) interfaceOf(c *callee) *spec.Interface {
	cfg := c.self.cfg
	e, known := c.argument("interface")
	switch {
	case cfg == nil || !known:
	case e != nil:
		return cfg.Interface(constantText(w.infer(e, c.s)))
	case len(cfg.Interfaces) == 1:
		return cfg.Interfaces[0]
	}
	return nil
}

// queuesOf returns an interface's queues in the direction of a call: rx_queue or tx_queue.
func queuesOf(c *callee, i *spec.Interface) []*spec.Queue {
	switch {
	case strings.HasPrefix(c.row.Name, "rx") && i.RX != nil:
		return i.RX.Queues
	case strings.HasPrefix(c.row.Name, "tx") && i.TX != nil:
		return i.TX.Queues
	}
	return nil
}

// constantText returns a constant string, or "".
func constantText(v value) string {
	if text, ok := v.constant.(lua.LString); ok && !v.byUser {
		return string(text)
	}
	return ""
}

func regionNamed(w *walker, c *callee, text string) error {
	cfg := c.self.cfg
	if cfg == nil || cfg.Region(text) != nil || w.names.otherRegions || w.walk != walkFaults {
		return nil
	}
	var known []string
	for _, r := range cfg.MemoryRegions {
		known = append(known, r.Name)
	}
	return errors.New(unknown("memory region", text, known))
}

func stageNamed(w *walker, c *callee, text string) error {
	if c.self.cfg == nil || w.names.others || w.walk != walkFaults {
		return nil
	}
	known := w.stageNames(c.self.cfg)
	if slices.Contains(known, text) {
		return nil
	}
	return errors.New(unknown("stage", text, known))
}

// stageNames lists the stages of the script and the configuration.
func (w *walker) stageNames(cfg *spec.Config) []string {
	list := keys(w.names.stages)
	for _, i := range cfg.Interfaces {
		if i.RX != nil {
			for _, r := range i.RX.ReorderConfigs {
				list = append(list, r.Name)
			}
		}
	}
	return list
}
