package generate

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

var update = flag.Bool("update", false, "write testdata/*.yaml by their first lines instead of comparing")

const madeBy = "# Made by: daqiri-run config generate "

// generated returns the files of a command line: the pair and its flags.
func generated(line string) ([]File, error) {
	words := strings.Fields(line)
	k := slices.IndexFunc(Pairs, func(p *Pair) bool { return p.Name == words[0] })
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	options := Pairs[k].AddFlags(fs)
	if err := fs.Parse(words[1:]); err != nil {
		return nil, err
	}
	return options.Files()
}

// TestGolden makes every file of testdata again from its first line. NAME-ROLE.yaml is the file of a role of several.
func TestGolden(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.yaml")
	if len(names) < 8 {
		t.Fatalf("%d files", len(names))
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(data), "\n")
		files, err := generated(strings.TrimPrefix(line, madeBy))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		file := files[0]
		for _, f := range files {
			if strings.HasSuffix(name, strings.TrimPrefix(f.Name, "raw-pair")) || strings.HasSuffix(name, strings.TrimPrefix(f.Name, "socket-pair")) {
				file = f
			}
		}
		if *update {
			if err := os.WriteFile(name, []byte(file.Text), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if file.Text != string(data) {
			t.Errorf("%s is not what its first line makes:\n%s", name, file.Text)
		}
		_, warnings, err := spec.ParseText(name, file.Text, spec.Options{})
		if !strings.Contains(line, "--engine") { // the device decides, which is a warning
			warnings = slices.DeleteFunc(warnings, func(w spec.Issue) bool { return strings.Contains(w.Text, "no engine is given") })
		}
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
	}
}

// TestRefusals: wrong options give an error that names the option and what is expected.
func TestRefusals(t *testing.T) {
	const pci = " --tx-address 0000:3b:00.0 --rx-address 0000:3b:00.1 --eth-dst-addr 02:00:00:00:00:02"
	for line, want := range map[string]string{
		"raw-pair":                                                               "--tx-address is missing: expected a PCI address",
		"raw-pair --role rx":                                                     "--rx-address is missing",
		"raw-pair --tx-address eth1":                                             "--rx-address is missing",
		"raw-pair --role tx --tx-address eth1":                                   "--eth-dst-addr is missing: expected an Ethernet address",
		"raw-pair --tx-address a\x7f":                                            `"--tx-address" flag: expected a PCI address`,
		"raw-pair --role middle":                                                 `"--role" flag: expected one of loopback, tx, rx, both`,
		"raw-pair --engine socket":                                               `"--engine" flag: expected one of default, loop`,
		"raw-pair --memory-kind heap":                                            `"--memory-kind" flag: expected one of host,`,
		"raw-pair --master-core -1":                                              `"--master-core" flag: expected a whole number from 0 to 65535`,
		"raw-pair --tx-queue-cores 4,":                                           `"--tx-queue-cores" flag: expected cores such as 4,6-9`,
		"raw-pair --tx-queue-cores 9-4":                                          `"--tx-queue-cores" flag: expected cores`,
		"raw-pair --tx-queue-cores -2":                                           `"--tx-queue-cores" flag: expected cores`,
		"raw-pair --rx-queue-cores 0-65535":                                      `"--rx-queue-cores" flag: expected cores`,
		"raw-pair --eth-dst-addr 02:00":                                          `"--eth-dst-addr" flag: expected an Ethernet address`,
		"raw-pair --ip-src-addr ::1":                                             `"--ip-src-addr" flag: expected an IPv4 address`,
		"raw-pair --buffer-size 64":                                              `"--buffer-size" flag: expected a whole number from 65 to 65535`,
		"raw-pair --daqiri-only=maybe":                                           `"--daqiri-only" flag: expected true or false`,
		"raw-pair --engine loop --role rx --tx-queue-cores 4":                    "--tx-queue-cores: only with --role loopback or tx or both",
		"raw-pair --engine loop --rx-worker-cores 4,5":                           "--rx-worker-cores: expected one core for each of 1 queues, not 2",
		"raw-pair --engine loop --payload-size 8001":                             "--payload-size: 8001 bytes and 64 of headers do not fit the 8064 of --buffer-size",
		"raw-pair --engine loop --transform vlan --payload-size 7997":            "--payload-size: 7997 bytes and 68 of headers",
		"raw-pair --engine loop --transform gre --rx-queue-cores 4,5":            "--transform gre: only with one queue on each side",
		"raw-pair --engine loop --eth-src-addr 02:00:00:00:00:02":                "--eth-src-addr: only with --transform vxlan or gre or nvgre",
		"raw-pair --engine loop --num-bufs 1000":                                 "--num-bufs: 1000 buffers are less than the 10240 packets of --batch-size",
		"raw-pair --engine loop --udp-port 65535 --rx-queue-cores 4,5":           "--udp-port: 65535 leaves no port for each of 2 queues",
		"raw-pair --transform vlan" + pci:                                        "--transform vlan: --engine is missing",
		"raw-pair --engine dpdk --transform vxlan" + pci:                         "--eth-src-addr is missing",
		"raw-pair --role rx --rx-address 10.0.0.1":                               `--rx-address: "10.0.0.1" is an IP address`,
		"raw-pair --role tx --tx-address <pci> --eth-dst-addr 02:00:00:00:00:02": "--tx-address: placeholder not filled: <pci>",

		"socket-pair --transport sctp":                     `"--transport" flag: expected one of udp, tcp, roce`,
		"socket-pair --server-address camera":              `"--server-address" flag: expected an IPv4 or IPv6 address`,
		"socket-pair --server-port 0":                      `"--server-port" flag: expected a whole number from 1 to 65535`,
		"socket-pair --client-port 5001":                   "--client-port: 5001 is the server's port on the same address",
		"socket-pair --client-address ::1":                 "--client-address: ::1 and 127.0.0.1 of --server-address are not of one IP version",
		"socket-pair --message-size 65508":                 "--message-size: 65508 bytes are more than the 65507 of a datagram",
		"socket-pair --rx-batch-size 33":                   `"--rx-batch-size" flag: expected a whole number from 1 to 32`,
		"socket-pair --tx-depth 3":                         "--tx-depth: only with --transport roce",
		"socket-pair --roce-transport-mode UD":             "--roce-transport-mode: only with --transport roce",
		"socket-pair --transport roce --iterations 3":      "--iterations: only with --transport tcp or udp",
		"socket-pair --transport roce --rx-batch-size 3":   "--rx-batch-size: only with --transport tcp or udp",
		"socket-pair --role server --client-worker-core 3": "--client-worker-core: only with --role loopback or client or both",
	} {
		if _, err := generated(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestOptions: a default is a value that its option accepts, and the description of every option is there.
func TestOptions(t *testing.T) {
	for _, p := range Pairs {
		for _, o := range p.options {
			if _, ok := o.kind.parse(o.def); o.def != "" && !ok || o.words == "" {
				t.Errorf("%s --%s: default %q, %q", p.Name, o.name, o.def, o.words)
			}
			if o.only.option != "" && !slices.ContainsFunc(p.options, func(other option) bool { return other.name == o.only.option }) {
				t.Errorf("%s --%s depends on --%s, which is not an option", p.Name, o.name, o.only.option)
			}
		}
	}
}
