package manual

import (
	"regexp"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// API returns the pages of the Lua API, generated from the registration tables: an index, and a page per module and type.
func API() []Topic {
	pages := []Topic{{Name: "api/README", Short: "the Lua API", Parts: apiIndex}}
	for _, s := range bindings.Reference() {
		pages = append(pages, Topic{Name: "api/" + s.Name, Short: s.Title, Parts: func() []Part { return sectionParts(&s) }})
	}
	return append(pages, Topic{Name: "api/types", Short: "types of arguments and results", Parts: typeParts})
}

// LuaHelp returns the help text of a page ("queue", "api") or a name ("q:alloc", "queue:alloc", "daqiri.open", "on_burst"), for each section that
// has the name; "" if there is none.
func LuaHelp(asked string) string {
	for _, t := range API() {
		if t.Help() == asked {
			return t.Text()
		}
	}
	at := strings.LastIndexAny(asked, ".:") + 1
	of, name := strings.TrimRight(asked[:at], ".:"), asked[at:]
	var parts []Part
	for _, s := range bindings.Reference() {
		for _, n := range s.Names {
			full := s.Prefix(&n) + n.Name
			if full == asked || s.Kind != "module" && strings.HasSuffix(full, "."+asked) || n.Name == name && (of == "" || of == s.Name || of == s.Self) {
				parts = append(parts, nameParts(&s, &n)...)
			}
		}
	}
	for _, s := range row.Shapes() {
		if s.Name == asked {
			parts = append(parts, shapeParts(&s)...)
		}
	}
	return Topic{Parts: func() []Part { return parts }}.Text()
}

// LuaContents returns a short form of a page, which fits a terminal: its names with a sentence each. "" if asked is not a page.
func LuaContents(asked string) string {
	list := bindings.Reference()
	at := slices.IndexFunc(list, func(s row.Section) bool { return s.Name == asked })
	if at < 0 {
		return ""
	}
	s := &list[at]
	names := &Table{Columns: []string{"name", "what it does"}}
	for _, n := range s.Names {
		names.Rows = append(names.Rows, []string{"`" + s.Prefix(&n) + n.Name + "`", code(firstSentence(n.Words))})
	}
	parts := append(paragraphs(s.Words), Part{Table: names}, Part{Words: "`help \"" + strings.Trim(names.Rows[0][0], "`") +
		"\"` prints all of one; `daqiri-run help " + s.Name + "` of each."})
	return Topic{Parts: func() []Part { return parts }}.Text()
}

func firstSentence(words string) string {
	first, _, _ := strings.Cut(strings.TrimSuffix(words, "."), ". ")
	first, _, _ = strings.Cut(first, ".\n")
	return first
}

// LuaNames lists the API names that LuaHelp accepts: alone, and as scripts write them.
func LuaNames() (names []string) {
	for _, s := range bindings.Reference() {
		for _, n := range s.Names {
			names = append(names, n.Name, s.Prefix(&n)+n.Name)
		}
	}
	return names
}

var rules = []string{
	"Options are one table; an unknown key, method, field, figure or global raises, and the error suggests another.",
	"An expected failure returns nil, a status (`\"NOT_READY\"`) and a text; misuse raises `bad argument #n to 'f' (…)`.",
	"Packets, segments and elements of lists count from 1; byte offsets in a packet from 0, bit offsets as in RFCs.",
	"Times of a session are ns since its start, as numbers; absolute times are `daqiri.time`, from 1970 to 2262: what is due later doesn't come. Durations are " +
		"seconds, rates bits/s and sizes bytes, or text with a unit. A number as text (`\"1\"`) has no unit and is refused.",
	"A call that waits serves the handlers when it is made in the main chunk, blocks its task in a handler, and raises in `on_burst` and in a " +
		"coroutine. After a stop (Ctrl-C) it raises.",
	"An error in a handler passes through the call that serves it (`s:run`, `daqiri.sleep`): the session ends, files are closed. An error in a task " +
		"ends the program in the same way.",
}

func apiIndex() []Part {
	pages := &Table{Columns: []string{"page", "what it is"}}
	for _, s := range bindings.Reference() {
		pages.Rows = append(pages.Rows, []string{"[" + s.Name + "](" + s.Name + ".md)", code(firstSentence(s.Words))})
	}
	pages.Rows = append(pages.Rows, []string{"[types](types.md)", "What arguments and results are that have a name of their own: `duration`, `place`, `policy`"})
	parts := []Part{
		{Words: "What scripts find behind `require \"daqiri\"`, and the types of objects that it makes. `daqiri-run help NAME` prints what is here of a name: " +
			"`help q:alloc`, `help on_burst`, `help queue`. For completion and hints in an editor with the Lua language server, put `docs/api` " +
			"into its setting `workspace.library` (`.luarc.json`: `{ \"workspace.library\": [\"docs/api\"] }`): [daqiri.d.lua](daqiri.d.lua) describes every name."},
		{Table: pages},
		{Words: "Modules that are written in Lua have READMEs of their own: [`daqiri.api`](../../stdlib/api/README.md), the reference's calls; and " +
			"[`daqiri.hexdump`, `daqiri.headers`](../../stdlib/README.md). Also: [Lua 5.1, what differs and limits](../lua.md), [writers](../writers.md), " +
			"[reordering](../reordering.md), [conditions](../conditions.md), [fields](../fields.md)."},
		{Head: "rules"},
	}
	for _, r := range rules {
		parts = append(parts, Part{Words: "- " + r})
	}
	return parts
}

func typeParts() []Part {
	parts := []Part{{Words: "Beside Lua's own types and those of objects."}}
	for _, s := range row.Shapes() {
		parts = append(parts, shapeParts(&s)...)
	}
	return parts
}

func shapeParts(s *row.Shape) []Part {
	parts := []Part{{Code: s.Name}}
	if s.Type == "" {
		parts = append(parts, Part{Words: code(s.Words)}, Part{Table: values("key", s.Keys)})
	} else {
		parts = append(parts, Part{Words: "`" + s.Type + "`. " + code(s.Words)})
	}
	return append(parts, Part{Lua: s.Example})
}

func sectionParts(s *row.Section) []Part {
	parts := paragraphs(s.Words)
	if len(s.Elements) > 0 {
		parts = append(parts, Part{Table: values("element", s.Elements)})
	}
	for _, n := range s.Names {
		parts = append(parts, nameParts(s, &n)...)
	}
	return parts
}

// nameParts returns the parts that describe one name.
func nameParts(s *row.Section, n *row.Name) []Part {
	parts := append([]Part{{Code: s.Prefix(n) + n.Call()}}, paragraphs(n.Words)...)
	if all := slices.Concat(n.Args, n.Options); len(all) > 0 {
		parts = append(parts, Part{Table: values("argument", all)})
	}
	if len(n.Results) > 0 {
		var list []string
		for _, r := range n.Results {
			list = append(list, strings.TrimSuffix("`"+strings.ReplaceAll(r.Type, "failure", "nil, status, text")+"`, "+meaning(&r), ", "))
		}
		verb := "Returns "
		if n.Field {
			verb = "Holds "
		}
		parts = append(parts, Part{Words: verb + strings.Join(list, "; and ") + "."})
	}
	return append(parts, Part{Lua: n.Example})
}

func paragraphs(words string) (parts []Part) {
	for p := range strings.SplitSeq(words, "\n\n") {
		parts = append(parts, Part{Words: code(p)})
	}
	return parts
}

// values formats arguments, keys or elements as a table.
func values(what string, list []row.Value) *Table {
	t := &Table{Columns: []string{what, "type", "default", "meaning"}}
	for _, v := range list {
		missing := "needed"
		switch {
		case v.Default != "":
			missing = "`" + v.Default + "`"
		case v.Optional:
			missing = "none"
		}
		t.Rows = append(t.Rows, []string{"`" + v.Name + "`", "`" + v.Type + "`", missing, meaning(&v)})
	}
	return t
}

// meaning returns a value's unit and words.
func meaning(v *row.Value) string {
	if v.Unit == "" || v.Words == "" {
		return v.Unit + code(v.Words)
	}
	return v.Unit + ": " + code(v.Words)
}

var quoted = regexp.MustCompile(`(^|[\s(])'([^'\s][^']*)'`)

// code marks text in single quotes as code.
func code(words string) string { return quoted.ReplaceAllString(words, "$1`$2`") }
