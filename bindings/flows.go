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

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// parseFlows reads a list of flows {name, match, action} by the configuration's own parser.
func parseFlows(list any) ([]*spec.Flow, error) {
	flows, err := spec.ParseFlows(list)
	return flows, inWords(err)
}

// parseMatch reads one match, for a filter.
func parseMatch(match any) (*spec.Match, error) {
	m, err := spec.ParseMatch(match)
	return m, inWords(err)
}

// inWords puts all faults of a table on one line; their place is the path.
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

// flows reads argument n as flows for the interface.
func (c *call) flows(n int, i *session.Interface) []session.Flow {
	list, err := plainValue(c.table(n, "list of flows"), 0)
	c.check(err)
	if m, ok := list.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	parsed, err := parseFlows(list)
	if err != nil {
		c.argError(n, "%v", err)
	}
	flows := make([]session.Flow, len(parsed))
	for k, f := range parsed {
		for _, id := range f.QueueIDs() {
			if !slices.ContainsFunc(i.RxQueues(), func(q *session.Queue) bool { return q.ID() == id }) {
				c.argError(n, "flows[%d].action.id: interface %s has no receive queue %d", k, i.Name(), id)
			}
		}
		flows[k] = session.Flow{Name: f.Name, Match: f.Match, Queues: f.QueueIDs(), Transforms: f.Transforms()}
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

// interfaceFlows is i:flows(): a list of {id, group, name, match, actions, queues, packets, bytes}.
func interfaceFlows(c *call) int {
	list := c.L.NewTable()
	for _, f := range selfInterface(c).i.Flows() {
		t := c.L.NewTable()
		t.RawSetString("id", lua.LNumber(f.ID))
		t.RawSetString("group", lua.LString(f.Group))
		t.RawSetString("name", lua.LString(f.Name))
		t.RawSetString("match", c.rt.fromGo(plainMatch(&f.Match)))
		t.RawSetString("actions", c.rt.fromGo(plainActions(&f)))
		t.RawSetString("queues", c.rt.fromGo(plainQueues(f.Queues)))
		if f.Hits != nil {
			t.RawSetString("packets", lua.LNumber(f.Hits.Packets))
			t.RawSetString("bytes", lua.LNumber(f.Hits.Bytes))
		}
		list.Append(t)
	}
	return c.push(list)
}

// plainMatch gives a match as a configuration has it.
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

// plainActions gives a flow's actions as a configuration has them.
func plainActions(f *session.Flow) []any {
	var list []any
	for _, a := range f.Transforms {
		plain := plainObject(a)
		if tunnel, ok := plain["tunnel"].(map[string]any); ok {
			id := map[string]string{spec.TunnelVXLAN: "vni", spec.TunnelNVGRE: "tni"}[a.Tunnel.Type]
			if id != "" && tunnel[id] == nil {
				tunnel[id] = json.Number("0") // it has to be given
			}
		}
		list = append(list, plain)
	}
	return append(list, map[string]any{"type": spec.ActionQueue, "ids": plainQueues(f.Queues)})
}

func plainQueues(ids []int) []any {
	list := make([]any, len(ids))
	for k, id := range ids {
		list[k] = json.Number(strconv.Itoa(id))
	}
	return list
}

// plainObject is what JSON makes of a part of a configuration.
func plainObject(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and texts
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		panic(err)
	}
	return out
}
