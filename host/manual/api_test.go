package manual

import (
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"

	"github.com/daqiri/daqiri-run/bindings"
)

// TestAnnotations checks that the annotations are valid Lua and contain every name.
func TestAnnotations(t *testing.T) {
	text := Annotations()
	if _, err := parse.Parse(strings.NewReader(text), "daqiri.d.lua"); err != nil {
		t.Fatal(err)
	}
	for _, s := range bindings.Reference() {
		_, section, _ := strings.Cut(text, map[string]string{"type": "---@class daqiri.", "module": "---@class "}[s.Kind]+s.Name+"\n")
		if s.Kind == "globals" {
			section = text
		}
		for _, n := range s.Names {
			prefix := map[string]string{"type": s.Name + ":", "module": s.Name + "."}[s.Kind]
			line := "\nfunction " + prefix + n.Name + "("
			if n.Field {
				section, _, _ := strings.Cut(section, "\n\n")
				line = "---@field " + n.Name + " "
				if !strings.Contains(section, line) {
					t.Errorf("%s: no %q", s.Name, line)
				}
			} else if strings.Count(text, line) != 1 {
				t.Errorf("%s: not one %q", s.Name, line)
			}
			for _, o := range n.Options {
				_, class, _ := strings.Cut(text, "---@class (exact) "+optionClass(&s, &n)+"\n")
				class, _, _ = strings.Cut(class, "\n\n")
				if !regexp.MustCompile(`(?m)^---@field ` + regexp.QuoteMeta(o.Name) + `\?? `).MatchString(class) {
					t.Errorf("%s%s: no option %s", prefix, n.Name, o.Name)
				}
			}
		}
	}
}

// TestAnnotationForms checks that types of the API have a prefix, and that an expected failure has three results.
func TestAnnotationForms(t *testing.T) {
	text := Annotations()
	for _, want := range []string{
		"---@param n? integer packets: at most batch_size (default: batch_size)\n---@return daqiri.burst|nil\n---@return string|nil status\n---@return string|nil text\nfunction queue:alloc(n) end",
		"---@param fn fun(b: daqiri.burst)|false called with each burst; false removes the handler of that name, or all\n---@param options? daqiri.queue.on_burst.options\n---@return daqiri.queue # itself\nfunction queue:on_burst(fn, options) end",
		"---@operator add(daqiri.duration): daqiri.time\n",
		"---@alias daqiri.policy \"drop\"|\"wait\"\n",
		"---@field [integer] integer|nil ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestLuaHelp looks up pages, unique names, and names that several sections have.
func TestLuaHelp(t *testing.T) {
	for asked, want := range map[string][]string{
		"queue":           {"q:alloc(n)\n", "q.layer\n"},
		"api":             {"RULES", "globals"},
		"types":           {"duration\n"},
		"q:alloc":         {"q:alloc(n)\n", "packets: at most batch_size", "  local b = assert(tx:alloc(8))\n"},
		"queue:alloc":     {"q:alloc(n)\n"},
		"on_burst":        {"q:on_burst(fn, {name, sample, policy})\n", "c:on_burst(", "st:on_burst("},
		"daqiri.open":     {"daqiri.open(configuration, {set, engine, cores, memory, name, bindings})\n"},
		"math.randomseed": {"math.randomseed(n)\n"},
		"randomseed":      {"math.randomseed(n)\n"},
		"place":           {"bit_offset"},
	} {
		got := LuaHelp(asked)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("help %s: no %q in\n%s", asked, w, got)
			}
		}
	}
	if strings.Contains(LuaHelp("queue:alloc"), "c:alloc") {
		t.Error("queue:alloc shows a connection's")
	}
	for _, asked := range []string{"nobody", "q:nobody", "nobody:alloc", "", "q:"} {
		if got := LuaHelp(asked); got != "" {
			t.Errorf("help %q: %s", asked, got)
		}
	}
}

// TestLuaContents checks that the short form of every page has all names, and that there is none for other words.
func TestLuaContents(t *testing.T) {
	for _, s := range bindings.Reference() {
		got := LuaContents(s.Name)
		for _, n := range s.Names {
			if !strings.Contains(got, "  "+s.Prefix(&n)+n.Name+" ") {
				t.Errorf("%s: no %s in\n%s", s.Name, n.Name, got)
			}
		}
		if lines, whole := strings.Count(got, "\n"), strings.Count(LuaHelp(s.Name), "\n"); whole > 40 && lines > whole/2 {
			t.Errorf("%s: %d lines, of the whole %d", s.Name, lines, whole)
		}
	}
	if LuaContents("q:alloc")+LuaContents("") != "" {
		t.Error("a name has contents")
	}
}
