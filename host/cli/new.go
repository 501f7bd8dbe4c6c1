package cli

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/scripts"
	"github.com/daqiri/daqiri-run/stdlib"
)

//go:embed template/*
var templates embed.FS

// newFlags select the content of a new script.
type newFlags struct {
	from, listen, format string
	interfaces           []string
}

// newFile is a file to be written.
type newFile struct{ name, text string }

// newNew returns the command "new".
func newNew(g *state.Global) *cobra.Command {
	var f newFlags
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "begin a script of your own and its configuration, from a template or a script of the program",
		Long: `new writes NAME.lua and its configuration NAME.yaml, and replaces nothing. With --format it also writes NAME-reader.py and NAME-dissector.lua. Without --from it is a receiver to change; with --from
a copy of a script of the program (daqiri-run list) that opens a copy of that script's configuration.
  daqiri-run new antenna                                     datagrams to port 7148
  daqiri-run new antenna --interface eth1                    frames of a Linux interface, beside the kernel
  daqiri-run new antenna --interface 0000:3b:00.0            frames of a card that DPDK has
  daqiri-run new antenna --format chips --listen :4015       a capture, blocks of payloads in order, their reader in Python, a dissector
  daqiri-run new relay --from forward --interface outside=eth1 --interface inside=eth2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Fail(exit.Usage, fmt.Errorf("one name at a time, not %d", len(args)))
			}
			return needs("the script to be made")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error { return begin(g, &f, strings.TrimSuffix(args[0], ".lua")) },
	}
	cmd.Flags().StringVar(&f.from, "from", "", "copy this `SCRIPT` of the program")
	cmd.Flags().StringVar(&f.format, "format", "", "for packets of this `FORMAT`: of the library (daqiri-run help formats), or a file of Lua")
	cmd.Flags().StringVar(&f.listen, "listen", "", "of the template: receive datagrams at this `[HOST]:PORT` (default :7148)")
	cmd.Flags().StringArrayVar(&f.interfaces, "interface", nil, "a real interface instead of the configuration's: `[NAME=]DEVICE` (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("from", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return scriptWords(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("interface", interfaceNames)
	_ = cmd.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return luaformat.LibraryNames(stdlib.Files), cobra.ShellCompDirectiveDefault
	})
	return cmd
}

// begin writes the files of a new script.
func begin(g *state.Global, f *newFlags, name string) error {
	make := f.template
	if f.from != "" {
		make = f.copy
	}
	files, err := make(name)
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := os.Lstat(file.name); err == nil {
			return exit.Fail(exit.Usage, fmt.Errorf("%s is there already: choose another name", file.name))
		}
	}
	made := []string{}
	for _, file := range files {
		if err := writeNew(file.name, file.text); err != nil {
			return exit.Fail(exit.Usage, err)
		}
		made = append(made, file.name)
	}
	last := len(made) - 1
	list := strings.TrimPrefix(strings.Join(made[:last], ", ")+" and "+made[last], " and ")
	fmt.Fprintf(g.Stdout, "made %s: run it with 'daqiri-run %s'\n", list, made[0])
	return nil
}

// writeNew writes a file that must not exist.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// template returns the template selected by the flags.
func (f *newFlags) template(name string) ([]newFile, error) {
	base := filepath.Base(name)
	var declared *format.Format
	if f.format != "" {
		var err error
		if declared, err = findFormat(f.format); err == nil {
			err = beside(f.format, name)
		}
		if err != nil {
			return nil, err
		}
	}
	from, err := f.source(declared)
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(append(from.values, "NAME", base, "WHAT", from.what)...).Replace
	text, err := templates.ReadFile("template/script.lua")
	if err != nil {
		return nil, err
	}
	config, err := templates.ReadFile("template/" + from.config)
	if err != nil {
		return nil, err
	}
	if declared != nil {
		return f.forFormat(name, from, fill(string(config)), declared)
	}
	return []newFile{{name + ".lua", strings.ReplaceAll(fill(string(text)), "help "+base+"'", "help NAME'")}, {name + ".yaml", fill(string(config))}}, nil
}

// source is what a new script receives.
type source struct {
	config string   // template of the configuration
	what   string   // in words
	port   string   // of datagrams; "": frames
	values []string // for the template: pairs of a word and its value
}

// source returns what the flags select. A format's port is the default one.
func (f *newFlags) source(declared *format.Format) (source, error) {
	switch {
	case len(f.interfaces) > 1:
		return source{}, exit.Fail(exit.Usage, fmt.Errorf("--interface: the template has one interface, rx_port"))
	case len(f.interfaces) == 1 && f.listen != "":
		return source{}, exit.Fail(exit.Usage, fmt.Errorf("--interface and --listen exclude each other: frames of an interface, or datagrams to a port"))
	case len(f.interfaces) == 1:
		device, err := knownDevice(strings.TrimPrefix(f.interfaces[0], "rx_port="))
		if err != nil {
			return source{}, exit.Fail(exit.Usage, err)
		}
		engine := "      engine: packet                    # the kernel gets the frames, too; without this line (xdp) it gets none\n"
		if device.PCI == device.Name {
			engine = ""
		}
		return source{config: "raw.yaml", what: "frames of " + device.Name,
			values: []string{"DEVICE", device.Name, "BUF_SIZE", strconv.Itoa(bufSize(device)), "ENGINE", engine}}, nil
	default:
		listen := f.listen
		if listen == "" && declared != nil && declared.Spec.UDPPort != 0 {
			listen = ":" + strconv.Itoa(declared.Spec.UDPPort)
		}
		listen = cmp.Or(listen, ":7148")
		host, port, err := net.SplitHostPort(strings.TrimPrefix(listen, "udp://"))
		if err != nil {
			return source{}, exit.Fail(exit.Usage, fmt.Errorf("--listen %s: HOST:PORT or :PORT expected", listen))
		}
		if host == "" {
			host = "0.0.0.0"
		}
		return source{"socket.yaml", "the datagrams that come to port " + port, port, []string{"HOST", host, "LISTEN", net.JoinHostPort(host, port)}}, nil
	}
}

// knownDevice looks up an interface of this machine.
func knownDevice(name string) (machine.Interface, error) {
	var names []string
	for _, i := range machine.Here().Interfaces() {
		if i.Name == name {
			return i, nil
		}
		names = append(names, i.Name)
	}
	return machine.Interface{}, fmt.Errorf("--interface %s: this machine has no such interface; it has %s", name, strings.Join(names, ", "))
}

// bufSize returns the buffer size for a device's frames: MTU, header and a VLAN tag.
func bufSize(i machine.Interface) int {
	if i.MTU == 0 {
		return 9216
	}
	return max(2030, i.MTU+18)
}

// copy returns a shipped script with its configuration, on the given devices.
func (f *newFlags) copy(name string) ([]newFile, error) {
	from, ok := find(f.from)
	switch {
	case !ok:
		return nil, noScript(f.from)
	case f.format != "":
		return nil, exit.Fail(exit.Usage, fmt.Errorf("--format and --from exclude each other: a script for packets of a format, or a copy of a script"))
	case f.listen != "":
		return nil, exit.Fail(exit.Usage, fmt.Errorf("--listen is the template's: set local_addr in %s.yaml", name))
	}
	text, err := from.text()
	if err != nil {
		return nil, exit.Fail(exit.Usage, err)
	}
	d, err := from.describe()
	if err != nil {
		return nil, exit.Fail(exit.Script, err)
	}
	base := filepath.Base(name)
	text = strings.ReplaceAll(text, "-- "+from.path+":", "-- "+base+".lua:")
	config := d.Configuration()
	if config == "" {
		if len(f.interfaces) > 0 {
			return nil, exit.Fail(exit.Usage, fmt.Errorf("--interface: %s opens no configuration file", f.from))
		}
		return []newFile{{name + ".lua", text}}, nil
	}
	data, err := fs.ReadFile(scripts.Files, config)
	if err != nil {
		return nil, exit.Fail(exit.Usage, fmt.Errorf("%s: its configuration %s is not part of the program", f.from, config))
	}
	yaml, err := onDevices(config, string(data), f.interfaces)
	if err != nil {
		return nil, err
	}
	return []newFile{{name + ".lua", strings.ReplaceAll(text, `"`+config+`"`, `"`+base+`.yaml"`)}, {name + ".yaml", yaml}}, nil
}

var (
	nameLine     = regexp.MustCompile(`^\s+- name: (\S+)`)
	addressLine  = regexp.MustCompile(`^(\s+address: )\S+`)
	loopbackLine = regexp.MustCompile(`^\s+loopback:`)
	bufSizeLine  = regexp.MustCompile(`^(\s+buf_size: )\d+`)
)

// onDevices assigns devices to a configuration's interfaces and removes the loopback mode, so that all interfaces are real.
func onDevices(file, text string, given []string) (string, error) {
	if len(given) == 0 {
		return text, nil
	}
	if strings.Contains(text, "stream_type: socket") {
		return "", exit.Fail(exit.Usage, fmt.Errorf("--interface: %s is of sockets; 'daqiri-run new NAME --interface DEVICE' begins a script for frames", file))
	}
	devices, most, first := map[string]string{}, 2030, ""
	for _, arg := range given {
		name, address, named := strings.Cut(arg, "=")
		if !named {
			name, address = "", arg
		}
		device, err := knownDevice(address)
		if err != nil {
			return "", exit.Fail(exit.Usage, err)
		}
		devices[name], most, first = address, max(most, bufSize(device)), address
	}
	var out strings.Builder
	var names, left []string
	name := ""
	for line := range strings.Lines(text) {
		if m := nameLine.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		switch {
		case strings.HasPrefix(line, "#"), loopbackLine.MatchString(line):
			continue
		case addressLine.MatchString(line):
			names = append(names, name)
			if address := devices[name]; address != "" {
				line = addressLine.ReplaceAllString(line, "${1}"+address)
				delete(devices, name)
			} else {
				left = append(left, name)
			}
		case bufSizeLine.MatchString(line):
			line = bufSizeLine.ReplaceAllString(line, "${1}"+strconv.Itoa(most))
		}
		out.WriteString(line)
	}
	text = out.String()
	if address := devices[""]; address != "" && len(names) == 1 {
		text, left = regexp.MustCompile(`(?m)`+addressLine.String()).ReplaceAllString(text, "${1}"+address), nil
		delete(devices, "")
	}
	switch {
	case len(devices) > 0 || len(left) > 0:
		return "", exit.Fail(exit.Usage, fmt.Errorf("--interface: %s has the interfaces %s: give each a device, as in --interface %s=%s", file,
			strings.Join(names, ", "), names[0], first))
	}
	return "# The configuration " + file + " of daqiri-run, on " + strings.Join(given, ", ") + ".\n" + text, nil
}
