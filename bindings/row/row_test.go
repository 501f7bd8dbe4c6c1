package row

import (
	"fmt"
	"testing"
)

// TestParseRow parses a row with every possible element.
func TestParseRow(t *testing.T) {
	n, err := Parse("get", `- a? string | fun(x: integer, y: any) | "a = b, c: d" | nil = "x: y", ns: the first,
		  and more
		- ... any: others
		. key integer = 5, us: how long
		-> burst | failure
		Words go on
		here.

		A second paragraph.
		> local b = get()
		>   print(b)`)
	if err != nil {
		t.Fatal(err)
	}
	want := Name{Name: "get",
		Args: []Value{{"a", `string | fun(x: integer, y: any) | "a = b, c: d" | nil`, `"x: y"`, "ns", "the first, and more", true},
			{"...", "any", "", "", "others", true}},
		Options: []Value{{"key", "integer", "5", "us", "how long", true}},
		Results: []Value{{Type: "burst | failure"}},
		Words:   "Words go on here.\n\nA second paragraph.", Example: "local b = get()\n  print(b)"}
	if got, want := fmt.Sprintf("%+v", n), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if call := n.Call(); call != "get(a, ..., {key})" {
		t.Error(call)
	}
	if _, err := Parse("bad", "- Name"); err == nil {
		t.Error("a name without a type was taken")
	}
}
