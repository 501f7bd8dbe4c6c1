package manual

import (
	"strings"
	"testing"
)

// TestSearch asks questions of users, with other forms of the words and with other words for the same, whose best answer is known.
func TestSearch(t *testing.T) {
	entries := Entries()
	for asked, want := range map[string]string{
		"count lost packets":                 "daqiri-run doc cookbook 'Count lost packets by sequence number'",
		"how do I count the dropped packets": "daqiri-run doc cookbook 'Count lost packets by sequence number'",
		"transmit at a fixed speed":          "daqiri-run doc cookbook 'Send at a fixed rate'",
		"write floats for numpy":             "daqiri-run doc cookbook 'Write floats for numpy'",
		"Wireshark":                          "daqiri-run doc cookbook 'Record a declared header, print it as a table, show it in Wireshark'",
		"pin threads to a cpu core":          "daqiri-run help cpu_core",
		"record to pcap":                     "daqiri-run help s:write_pcap",
	} {
		if found := Search(asked, entries); len(found) == 0 || len(found) > 3 || found[0].Read != want {
			t.Errorf("%s: %d results:\n%s\nwant first %s", asked, len(found), Results(asked, found), want)
		}
	}
	for _, asked := range []string{"xyzzy", "", "the of and"} {
		if found := Search(asked, entries); len(found) > 0 {
			t.Errorf("%q: found %s", asked, found[0].Read)
		}
	}
}

// TestSearchReads checks that each entry of a document names a page and a chapter that 'doc' finds, and that the sentence shown is the one asked for.
func TestSearchReads(t *testing.T) {
	text := "# Title\n\nFirst words.\n\n```sh\ncode lost\n```\n\n## It's `one`\n\nA sentence. A *second* one: with\n`apples`.\n\n| a | b |\n|---|---|\n| `pear` | [plum](x.md) |\n\n- an item\n"
	all := documentEntries("page", text)
	if len(all) != 2 || all[0].Read != "daqiri-run doc page" || all[1].Read != `daqiri-run doc page 'It'\''s one'` {
		t.Fatalf("%+v", all)
	}
	if part := FindChapter(text, Headings(text)[0]); !strings.HasPrefix(part, "## It's") {
		t.Errorf("chapter %q", part)
	}
	if strings.Contains(strings.Join(all[0].Text, " "), "code") {
		t.Errorf("code in %q", all[0].Text)
	}
	for asked, want := range map[string]string{"apple": "with apples.", "plums": "pear  plum", "items": "an item", "zebra": "A sentence."} {
		if got := all[1].sentence(terms(asked)); got != want {
			t.Errorf("%s: sentence %q, want %q", asked, got, want)
		}
	}
}

// TestTerminal formats each kind of block.
func TestTerminal(t *testing.T) {
	const text = "# A title\n\nSome *words* of `code`, and a [page](x.md), [far](https://x.org).\n<!-- left out -->\n\n## More\n\n- one that is longer than a line of so few columns\n- two\n\n" +
		"3. three\n4. four\n\n```sh\nls\t-l\n```\n\n| key | what it does and for whom |\n|---|---|\n| `a_long_name` | words that do not fit beside it |\n"
	const want = `A title
═══════

Some words of code, and a page, far
(https://x.org).

More

• one that is longer than a line of so
  few columns
• two

3. three
4. four

    ls    -l

key          what it does and for whom
───────────  ───────────────────────────
a_long_name  words that do not fit
             beside it
`
	if got := Terminal(text, 40, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Terminal("a **b c**", 40, true); got != "a \x1b[1mb\x1b[0m \x1b[1mc\x1b[0m\n" {
		t.Errorf("with color %q", got)
	}
}
