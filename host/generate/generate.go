// Package generate makes configuration files from options: a pair of raw ports, or a pair of endpoints, with the sections that the benchmark
// programs of DAQIRI read beside the configuration.
//
// The same options give the same bytes: nothing is read from the machine. It may import runtime/spec, which checks what it makes.
package generate

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

//go:embed template/*.yaml
var templates embed.FS

// A Pair is a kind of generated configuration.
type Pair struct {
	Name, Short, Long string
	sides             [2]string // roles of the two hosts; role "loopback" has both sides in one file
	options           []option
	addresses         [2]string                                                // options with the addresses of the sides' interfaces
	prepare           func(p *Pair, values map[string]any, sides []bool) error // adds the computed values of the template
}

// Pairs are the kinds of generated configurations.
var Pairs = []*Pair{rawPair, socketPair}

// Roles that both pairs have.
const (
	roleLoopback = "loopback" // both sides in one file
	roleBoth     = "both"     // a file for each side
)

// roles returns the option --role of a pair.
func roles(sides [2]string) option {
	return option{name: "role", kind: choice(roleLoopback, sides[0], sides[1], roleBoth), def: roleLoopback,
		words: fmt.Sprintf("`ROLE` of the host: %s (both sides in one file), %s, %s, or %s (a file for each side)", roleLoopback, sides[0], sides[1], roleBoth)}
}

// Options are the options of one command line.
type Options struct {
	pair   *Pair
	values map[string]*value
}

// AddFlags adds the flags of a pair to fs.
func (p *Pair) AddFlags(fs *pflag.FlagSet) *Options { return &Options{p, add(fs, p.options)} }

// Choices returns the options that accept certain words only, with these words.
func (p *Pair) Choices() map[string][]string {
	m := map[string][]string{}
	for _, o := range p.options {
		if o.kind.choices != nil {
			m[o.name] = o.kind.choices
		}
	}
	return m
}

// A File is a generated file.
type File struct{ Name, Text string }

// Files returns the files of the options, or an error that names an option.
func (o *Options) Files() ([]File, error) {
	if err := allowed(o.pair.options, o.values); err != nil {
		return nil, err
	}
	role := o.values["role"].parsed.(string)
	made := []string{role}
	if role == roleBoth {
		made = o.pair.sides[:]
	}
	var files []File
	for _, r := range made {
		f, err := o.file(r)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (o *Options) file(role string) (File, error) {
	p := o.pair
	values := map[string]any{"made_by": o.commandLine()}
	for name, v := range o.values {
		values[key(name)] = v.parsed
	}
	sides := []bool{role != p.sides[1], role != p.sides[0]}
	values[p.sides[0]], values[p.sides[1]] = sides[0], sides[1]
	if err := p.prepare(p, values, sides); err != nil {
		return File{}, err
	}
	file := File{Name: p.Name + ".yaml"}
	if role != roleLoopback {
		file.Name = p.Name + "-" + role + ".yaml"
	}
	t := template.Must(template.New(p.Name+".yaml").Funcs(template.FuncMap{"quote": strconv.Quote}).Option("missingkey=error").
		ParseFS(templates, "template/"+p.Name+".yaml"))
	var text strings.Builder
	if err := t.Execute(&text, values); err != nil {
		return File{}, err
	}
	file.Text = text.String()
	return file, p.check(file, sides)
}

// key returns the name of an option's value in a template.
func key(name string) string { return strings.ReplaceAll(name, "-", "_") }

// commandLine returns the command with the options that were given, in the order of the table.
func (o *Options) commandLine() string {
	line := "daqiri-run config generate " + o.pair.Name
	for _, option := range o.pair.options {
		switch v := o.values[option.name]; {
		case !v.given:
		case v.parsed == true:
			line += " --" + v.name
		default:
			line += fmt.Sprintf(" --%s=%s", v.name, strings.ReplaceAll(strings.Trim(fmt.Sprint(v.parsed), "[]"), " ", ","))
		}
	}
	return line
}

var ofInterface = regexp.MustCompile(`^interfaces\[([01])\]\.(address|socket_config\.)`)

// check returns the first error of the generated file. An error of an address names the option.
func (p *Pair) check(file File, sides []bool) error {
	_, _, err := spec.ParseText(file.Name, file.Text, spec.Options{})
	var faults *spec.Errors
	if !errors.As(err, &faults) {
		return err
	}
	fault := faults.Issues[0]
	if m := ofInterface.FindStringSubmatch(fault.Path); m != nil {
		k := 0
		if m[1] == "1" || !sides[0] {
			k = 1
		}
		return fmt.Errorf("--%s: %s", p.addresses[k], fault.Text)
	}
	return fmt.Errorf("the options make no valid configuration: %s: %s", fault.Path, fault.Text)
}

// missing returns the error for an option that has to be given.
func (p *Pair) missing(name string) error {
	for _, o := range p.options {
		if o.name == name {
			return fmt.Errorf("--%s is missing: expected %s", name, o.kind.expects)
		}
	}
	return nil
}
