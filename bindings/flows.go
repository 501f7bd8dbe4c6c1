package bindings

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// parseMatch parses one match of a filter.
func parseMatch(match any) (*spec.Match, error) {
	m, err := spec.ParseMatch(match)
	return m, inWords(err)
}

// inWords joins all errors of a table on one line, each with its path.
func inWords(err error) error {
	var faults *spec.Errors
	if !errors.As(err, &faults) {
		return err
	}
	var lines []string
	for _, f := range faults.Issues {
		lines = append(lines, strings.TrimPrefix(f.Path, "match.")+": "+f.Text)
	}
	return errors.New(strings.Join(lines, "; "))
}

// flowSide holds the operations on an interface's flows of one direction.
type flowSide struct {
	parse        func(any) ([]*spec.Flow, error) // the configuration's parser
	add, replace func(i *session.Interface, group string, flows []flow.Flow) ([]uint32, error)
	deleteGroup  func(i *session.Interface, group string) (int, error)
	deleteID     func(i *session.Interface, id uint32) error
	list         func(i *session.Interface) []flow.Flow
}

var rxFlows = flowSide{spec.ParseFlows, (*session.Interface).AddFlows, (*session.Interface).ReplaceFlows,
	(*session.Interface).DeleteFlows, (*session.Interface).DeleteFlow, (*session.Interface).Flows}

var txFlows = flowSide{spec.ParseTxFlows, (*session.Interface).AddTxFlows, (*session.Interface).ReplaceTxFlows,
	(*session.Interface).DeleteTxFlows, (*session.Interface).DeleteTxFlow, (*session.Interface).TxFlows}

// flows reads argument n as flows {name, match, action} of the interface.
func (c *call) flows(n int, i *session.Interface, side *flowSide) []flow.Flow {
	list, err := value.Of(c.Table(n, "list of flows"), 0)
	c.Check(err)
	if m, ok := list.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	if side == &txFlows {
		c.autoTunnels(n, i, list)
	}
	parsed, err := side.parse(list)
	if err != nil {
		c.ArgError(n, "%v", inWords(err))
	}
	flows := make([]flow.Flow, len(parsed))
	for k, f := range parsed {
		for _, id := range f.QueueIDs() {
			if !slices.ContainsFunc(i.RxQueues(), func(q *session.Queue) bool { return q.ID() == id }) {
				c.ArgError(n, "flows[%d].action.id: interface %s has no receive queue %d", k, i.Name(), id)
			}
		}
		flows[k] = flow.Flow{Name: f.Name, Match: f.Match, Queues: f.QueueIDs(), Transforms: f.Transforms()}
	}
	return flows
}

// addFlows implements i:add_flows(group, {flow...}) and i:add_tx_flows: it adds all or none and returns their ids.
func (side *flowSide) addFlows(c *call) int {
	i := selfInterface(c)
	ids, err := side.add(i.i, c.Str(1, "group name"), c.flows(2, i.i, side))
	return c.flowIDs(ids, err)
}

func (side *flowSide) replaceFlows(c *call) int {
	i := selfInterface(c)
	ids, err := side.replace(i.i, c.Str(1, "group name"), c.flows(2, i.i, side))
	return c.flowIDs(ids, err)
}

// flowIDs pushes the ids; a rejection by the flow table or the engine is an expected failure.
func (c *call) flowIDs(ids []uint32, err error) int {
	if err != nil {
		return c.refuse(err)
	}
	return listOf(c, ids, 0)
}

// deleteFlows implements i:delete_flows(group | id) and i:delete_tx_flows: it returns the number of deleted flows.
func (side *flowSide) deleteFlows(c *call) int {
	i := selfInterface(c)
	if _, ok := c.Arg(1).(lua.LNumber); ok {
		if err := side.deleteID(i.i, uint32(c.Whole(1, "flow id", 0, 1<<32-1))); err != nil {
			return c.refuse(err)
		}
		return c.Push(lua.LNumber(1))
	}
	n, err := side.deleteGroup(i.i, c.Str(1, "group name or flow id"))
	if err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LNumber(n))
}

// listFlows implements i:flows(), a list of {id, group, name, match, actions, queues, packets, bytes}, and i:tx_flows().
func (side *flowSide) listFlows(c *call) int {
	list := c.L.NewTable()
	for _, f := range side.list(selfInterface(c).i) {
		t := c.L.NewTable()
		t.RawSetString("id", lua.LNumber(f.ID))
		t.RawSetString("group", lua.LString(f.Group))
		t.RawSetString("name", lua.LString(f.Name))
		t.RawSetString("match", c.rt.fromGo(plainMatch(&f.Match)))
		t.RawSetString("actions", c.rt.fromGo(plainActions(&f)))
		if len(f.Queues) > 0 {
			t.RawSetString("queues", c.rt.fromGo(plainQueues(f.Queues)))
		}
		if f.Hits != nil {
			t.RawSetString("packets", lua.LNumber(f.Hits.Packets))
			t.RawSetString("bytes", lua.LNumber(f.Hits.Bytes))
		}
		list.Append(t)
	}
	return c.Push(c.rt.shown(list))
}

// plainMatch converts a match to its configuration form.
func plainMatch(m *spec.Match) map[string]any {
	out := plainObject(m)
	if flex, ok := out["flex"].(map[string]any); ok {
		delete(out, "flex")
		maps.Copy(out, flex)
	}
	if ecpri, ok := out["ecpri"].(map[string]any); ok && ecpri["id"] != nil {
		ecpri["pc_id"] = ecpri["id"]
		delete(ecpri, "id")
	}
	return out
}

// plainActions converts a flow's actions to their configuration form.
func plainActions(f *flow.Flow) []any {
	var list []any
	for _, a := range f.Transforms {
		plain := plainObject(a)
		if tunnel, ok := plain["tunnel"].(map[string]any); ok {
			id := map[string]string{schema.TunnelVXLAN: "vni", schema.TunnelNVGRE: "tni"}[a.Tunnel.Type]
			if id != "" && tunnel[id] == nil {
				tunnel[id] = json.Number("0") // the parser requires the key
			}
		}
		list = append(list, plain)
	}
	if len(f.Queues) == 0 {
		return list
	}
	return append(list, map[string]any{"type": schema.ActionQueue, "ids": plainQueues(f.Queues)})
}

func plainQueues(ids []int) []any {
	list := make([]any, len(ids))
	for k, id := range ids {
		list[k] = json.Number(strconv.Itoa(id))
	}
	return list
}

// plainObject converts a part of a configuration to the maps that JSON decoding yields.
func plainObject(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // values are numbers and strings
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		panic(err)
	}
	return out
}
