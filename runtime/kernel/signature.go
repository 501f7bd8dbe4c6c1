package kernel

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Class is the type class of a kernel's parameter.
type Class byte

// Type classes of parameters.
const (
	Pointer Class = 'p'
	Whole   Class = 'i' // integer
	Float   Class = 'f'
	Word    Class = 'q' // PTX only: a pointer or an integer of 8 bytes
	Other   Class = 'r' // a structure, which scripts cannot pass
)

// Param is a parameter of a kernel.
type Param struct {
	Text  string // declaration in the source; PTX: its type
	Class Class
	Bytes int
}

// String returns the declaration: "const float *data".
func (p Param) String() string { return p.Text }

// declared is a parameter as declared in the source.
type declared struct {
	text, name string // text declares name and is valid in a struct
	pointer    bool
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"`)
	globals  = regexp.MustCompile(`__global__\b[^;{}]*?\b(\w+)\s*\(`)
	brackets = regexp.MustCompile(`\[[^\]]*\]`)
	lastWord = regexp.MustCompile(`(\w+)\s*$`)
)

// blank replaces comments and strings by spaces, which preserves offsets.
func blank(text string) string {
	return comments.ReplaceAllStringFunc(text, func(s string) string {
		return regexp.MustCompile(`[^\n]`).ReplaceAllString(s, " ")
	})
}

// kernelsOf returns the __global__ functions of a source with their parameters, in order.
func kernelsOf(text string) (names []string, params map[string][]declared) {
	plain := blank(text)
	params = map[string][]declared{}
	for _, at := range globals.FindAllStringSubmatchIndex(plain, -1) {
		name, rest := plain[at[2]:at[3]], plain[at[1]:]
		if strings.HasPrefix(name, "__") { // __launch_bounds__(...): the name follows it
			_, rest, _ = strings.Cut(rest, ")")
			m := regexp.MustCompile(`^[^;{}(]*?(\w+)\s*\(`).FindStringSubmatchIndex(rest)
			if m == nil {
				continue
			}
			name, rest = rest[m[2]:m[3]], rest[m[1]:]
		}
		if _, known := params[name]; known {
			continue
		}
		names = append(names, name)
		params[name] = declarations(upToClose(rest))
	}
	return names, params
}

// upToClose returns the text up to the matching closing parenthesis.
func upToClose(text string) string {
	depth := 1
	for i, c := range text {
		switch c {
		case '(', '[', '<':
			depth++
		case ')', ']', '>':
			if depth--; depth == 0 {
				return text[:i]
			}
		}
	}
	return text
}

// declarations splits a parameter list. A parameter without a name gets one.
func declarations(list string) (all []declared) {
	if list = strings.TrimSpace(list); list == "" || list == "void" {
		return nil
	}
	depth, from := 0, 0
	for i, c := range list + "," {
		switch c {
		case '(', '[', '<':
			depth++
		case ')', ']', '>':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, declaration(strings.Join(strings.Fields(list[from:i]), " ")))
				from = i + 1
			}
		}
	}
	return all
}

func declaration(text string) declared {
	text, _, _ = strings.Cut(text, "=")
	array := strings.Contains(text, "[")
	text = strings.TrimSpace(brackets.ReplaceAllString(text, ""))
	d := declared{text: text, pointer: array || strings.Contains(text, "*")}
	if m := lastWord.FindStringSubmatchIndex(text); m != nil && m[0] > 0 {
		d.name = text[m[2]:m[3]]
		if array {
			d.text = text[:m[2]] + "*" + d.name
		}
	}
	return d
}

// merge adds the information of the source's declarations to parameters from PTX.
func merge(params []Param, from []declared) {
	if len(from) != len(params) {
		return
	}
	for i, d := range from {
		params[i].Text = d.text
		switch {
		case params[i].Class == Word && d.pointer:
			params[i].Class = Pointer
		case params[i].Class == Word && plainNumber.MatchString(d.text):
			params[i].Class = Whole
		}
	}
}

var plainNumber = regexp.MustCompile(`\b(long|int|size_t|u?int64_t)\b`)

var (
	ptxEntry = regexp.MustCompile(`\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?`)
	ptxType  = regexp.MustCompile(`\.(b|u|s|f)(8|16|32|64|128)\b`)
	ptxArray = regexp.MustCompile(`\[(\d+)\]`)
)

// ptxParams returns the parameters of an entry of PTX and the names of all entries.
func ptxParams(ptx, entry string) (params []Param, entries []string, ok bool) {
	plain := comments.ReplaceAllString(ptx, " ")
	for _, m := range ptxEntry.FindAllStringSubmatch(plain, -1) {
		entries = append(entries, m[1])
		if m[1] != entry {
			continue
		}
		ok = true
		for _, text := range strings.Split(m[2], ",") {
			if text = strings.TrimSpace(text); text != "" {
				params = append(params, ptxParam(text))
			}
		}
	}
	return params, entries, ok
}

func ptxParam(text string) Param {
	text = strings.Join(strings.Fields(strings.TrimPrefix(text, ".param")), " ")
	m := ptxType.FindStringSubmatch(text)
	p := Param{Text: text, Class: Other}
	if m == nil {
		return p
	}
	bits, _ := strconv.Atoi(m[2])
	p.Bytes = bits / 8
	switch {
	case ptxArray.MatchString(text):
	case strings.Contains(text, ".ptr"):
		p.Class = Pointer
	case m[1] == "f":
		p.Class = Float
	case p.Bytes == 8:
		p.Class = Word
	case p.Bytes <= 4:
		p.Class = Whole
	}
	return p
}

// hostParams returns the parameters described by a host library, with two characters each.
func hostParams(types string, from []declared) (params []Param, err error) {
	if len(types) != 2*len(from) {
		return nil, fmt.Errorf("its library reports %d arguments instead of %d", len(types)/2, len(from))
	}
	for i, d := range from {
		params = append(params, Param{Text: d.text, Class: Class(types[2*i]), Bytes: int(types[2*i+1] - '0')})
	}
	return params, nil
}
