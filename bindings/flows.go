package bindings

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Flows and matches written as Lua tables go through the configuration's own parser, inside the
// smallest configuration that holds them: one set of keys, rules and error texts.

// parseFlows reads a list of flows {name, match, action} for an interface.
func parseFlows(i *session.Interface, list any) ([]*spec.Flow, error) {
	rows, ok := list.([]any)
	if !ok {
		return nil, errors.New("a list of flows expected")
	}
	flows := make([]any, len(rows))
	for n, row := range rows {
		flow, ok := row.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("flows[%d]: a table expected", n)
		}
		if _, given := flow["id"]; given {
			return nil, fmt.Errorf("flows[%d].id: ids of flows that a script adds are given out: leave the key out", n)
		}
		flow["id"] = n + 1
		if _, given := flow["name"]; !given {
			flow["name"] = fmt.Sprintf("flow %d", n+1)
		}
		flows[n] = flow
	}
	var queues []any
	for _, q := range i.RxQueues() {
		queues = append(queues, parserQueue(q.Name(), q.ID()))
	}
	rx := map[string]any{"queues": queues, "flows": flows}
	if c := i.Session().Config().Interface(i.Name()); c != nil && c.RX != nil && len(c.RX.FlexItems) > 0 {
		var items []any
		for _, f := range c.RX.FlexItems {
			items = append(items, map[string]any{"name": f.Name, "id": f.ID, "offset": f.Offset, "udp_dst_port": f.UDPDstPort})
		}
		rx["flex_items"] = items
	}
	out, err := parseRx(rx)
	if err != nil {
		return nil, err
	}
	for n, row := range rows {
		if name := row.(map[string]any)["name"]; name == fmt.Sprintf("flow %d", n+1) {
			out.Flows[n].Name = ""
		}
	}
	return out.Flows, nil
}

// parseMatch reads one match, for a filter.
func parseMatch(match any) (*spec.Match, error) {
	rx, err := parseRx(map[string]any{
		"queues": []any{parserQueue("q", 0)},
		"flows": []any{map[string]any{"name": "match", "id": 1, "match": match,
			"action": map[string]any{"type": "queue", "id": 0}}},
	})
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "flows[0].match.", ""))
	}
	return &rx.Flows[0].Match, nil
}

func parserQueue(name string, id int) map[string]any {
	return map[string]any{"name": name, "id": id, "poll_mode": "direct", "memory_regions": []any{"packets"}}
}

func parseRx(rx map[string]any) (*spec.RX, error) {
	cfg, _, err := spec.ParseTable(map[string]any{
		"version": 1, "stream_type": "raw", "master_core": 0, "loopback": "sw",
		"memory_regions": []any{map[string]any{"name": "packets", "kind": "host", "affinity": 0, "num_bufs": 1024, "buf_size": 2048}},
		"interfaces":     []any{map[string]any{"name": "i", "address": "loopback", "rx": rx}},
	}, spec.Options{})
	var faults *spec.Errors
	if errors.As(err, &faults) {
		var lines []string
		for _, f := range faults.Issues {
			lines = append(lines, strings.TrimPrefix(f.Path, "interfaces[0].rx.")+": "+f.Text)
		}
		return nil, errors.New(strings.Join(lines, "; "))
	}
	if err != nil {
		return nil, err
	}
	return cfg.Interfaces[0].RX, nil
}

// flows reads argument n as flows for the interface.
func (c *call) flows(n int, i *session.Interface) []session.Flow {
	list, err := plainValue(c.table(n, "list of flows"), 0)
	c.check(err)
	if m, ok := list.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	parsed, err := parseFlows(i, list)
	if err != nil {
		c.argError(n, "%v", err)
	}
	flows := make([]session.Flow, len(parsed))
	for k, f := range parsed {
		for _, a := range f.Actions {
			if a.Type != spec.ActionQueue {
				c.argError(n, "flows[%d]: action %s is not in this version", k, a.Type)
			}
		}
		flows[k] = session.Flow{Name: f.Name, Match: f.Match, Queues: f.QueueIDs()}
	}
	return flows
}

// interfaceAddFlows is i:add_flows(group, {flow…}): all or none; their ids.
func interfaceAddFlows(c *call) int {
	i := selfInterface(c)
	ids, err := i.i.AddFlows(c.str(1, "group name"), c.flows(2, i.i))
	return c.flowIDs(ids, err)
}

func interfaceReplaceFlows(c *call) int {
	i := selfInterface(c)
	ids, err := i.i.ReplaceFlows(c.str(1, "group name"), c.flows(2, i.i))
	return c.flowIDs(ids, err)
}

// flowIDs pushes ids; a refusal by the table or the engine is an expected failure.
func (c *call) flowIDs(ids []uint32, err error) int {
	if err != nil {
		return c.refuse(err)
	}
	return listOf(c, ids, 0)
}

// interfaceDeleteFlows is i:delete_flows(group | id): how many there were.
func interfaceDeleteFlows(c *call) int {
	i := selfInterface(c)
	if _, ok := c.arg(1).(lua.LNumber); ok {
		if err := i.i.DeleteFlow(uint32(c.whole(1, "flow id", 0, 1<<32-1))); err != nil {
			return c.refuse(err)
		}
		return c.push(lua.LNumber(1))
	}
	n, err := i.i.DeleteFlows(c.str(1, "group name or flow id"))
	if err != nil {
		return c.refuse(err)
	}
	return c.push(lua.LNumber(n))
}

// interfaceFlows is i:flows(): a list of {id, group, name, queues}.
func interfaceFlows(c *call) int {
	list := c.L.NewTable()
	for _, f := range selfInterface(c).i.Flows() {
		t := c.L.NewTable()
		t.RawSetString("id", lua.LNumber(f.ID))
		t.RawSetString("group", lua.LString(f.Group))
		t.RawSetString("name", lua.LString(f.Name))
		queues := c.L.NewTable()
		for _, q := range f.Queues {
			queues.Append(lua.LNumber(q))
		}
		t.RawSetString("queues", queues)
		list.Append(t)
	}
	return c.push(list)
}
