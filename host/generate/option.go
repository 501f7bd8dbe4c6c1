package generate

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// An option is a value of a template, and a flag of the command.
type option struct {
	name  string
	kind  kind
	def   string // "" if there is none, or if prepare computes it
	only  rule
	words string
}

// A rule restricts an option to certain values of another one.
type rule struct {
	option string
	values []string
}

// A kind is what an option accepts. parse reports whether it accepts the text, and returns the value for the template.
type kind struct {
	name    string
	expects string
	choices []string
	parse   func(text string) (any, bool)
}

// value is an option of a command line; it implements pflag.Value.
type value struct {
	*option
	given  bool
	parsed any
}

// Set implements pflag.Value.
func (v *value) Set(text string) error {
	parsed, ok := v.kind.parse(text)
	if !ok {
		return fmt.Errorf("expected %s", v.kind.expects)
	}
	v.given, v.parsed = true, parsed
	return nil
}

// String implements pflag.Value.
func (v *value) String() string {
	if v.option == nil {
		return ""
	}
	return v.def
}

// Type implements pflag.Value.
func (v *value) Type() string { return v.kind.name }

// add makes flags of options.
func add(fs *pflag.FlagSet, options []option) map[string]*value {
	values := map[string]*value{}
	for k := range options {
		o := &options[k]
		v := &value{option: o}
		if o.def != "" {
			v.parsed, _ = o.kind.parse(o.def)
		}
		values[o.name] = v
		flag := fs.VarPF(v, o.name, "", o.words)
		if o.kind.name == boolean.name {
			flag.NoOptDefVal = "true"
		}
	}
	return values
}

// allowed returns an error for the first option that was given although another option excludes it.
func allowed(options []option, values map[string]*value) error {
	for _, o := range options {
		if r := o.only; values[o.name].given && r.option != "" && !slices.Contains(r.values, fmt.Sprint(values[r.option].parsed)) {
			return fmt.Errorf("--%s: only with --%s %s", o.name, r.option, strings.Join(r.values, " or "))
		}
	}
	return nil
}

// boolean is the kind of options without a value.
var boolean = kind{name: "bool", expects: "true or false", parse: func(text string) (any, bool) {
	b, err := strconv.ParseBool(text)
	return b, err == nil
}}

func number(lo, hi int) kind {
	return kind{name: "NUMBER", expects: fmt.Sprintf("a whole number from %d to %d", lo, hi), parse: func(text string) (any, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= lo && n <= hi
	}}
}

func choice(words ...string) kind {
	return kind{name: "WORD", expects: "one of " + strings.Join(words, ", "), choices: words, parse: func(text string) (any, bool) {
		return text, slices.Contains(words, text)
	}}
}

// memoryKind is the kind of a memory region.
var memoryKind = choice(schema.KindHost, schema.KindHostPinned, schema.KindHuge, schema.KindDevice)

// Limits of cores and of lists of them.
const (
	maxCore  = 65535
	maxCores = 1024
)

// core is a CPU core of a thread; -1 does not pin the thread.
var core = number(-1, maxCore)

// cores is a list of cores, one for each queue or worker.
var cores = kind{name: "CORES", expects: "cores such as 4,6-9, or -1 for a thread that is not pinned", parse: func(text string) (any, bool) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if part == "-1" || !isRange {
			first, last = part, part
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < -1 || hi < lo || hi > maxCore || len(list)+hi-lo >= maxCores {
			return nil, false
		}
		for c := lo; c <= hi; c++ {
			list = append(list, c)
		}
	}
	return list, true
}}

var printable = regexp.MustCompile(`^[!-~]+$`)

// device is the address of a raw interface. Which forms an engine accepts is checked in the generated configuration.
var device = kind{name: "ADDRESS", expects: "a PCI address, a Linux interface or another address of a raw interface", parse: func(text string) (any, bool) {
	return text, printable.MatchString(text)
}}

// ip is an IPv4 or IPv6 address.
var ip = kind{name: "IP", expects: "an IPv4 or IPv6 address", parse: func(text string) (any, bool) {
	a, err := netip.ParseAddr(text)
	return a, err == nil && a.Zone() == ""
}}

var ipv4 = kind{name: "IP", expects: "an IPv4 address", parse: func(text string) (any, bool) {
	a, err := netip.ParseAddr(text)
	return a, err == nil && a.Is4()
}}

var mac = kind{name: "MAC", expects: "an Ethernet address such as 02:00:00:00:00:01", parse: func(text string) (any, bool) {
	a, err := net.ParseMAC(text)
	return a.String(), err == nil && len(a) == 6
}}
