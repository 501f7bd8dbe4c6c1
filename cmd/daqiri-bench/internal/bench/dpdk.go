package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	dpdkLibrary = "libdaqiri_dpdk.so"
	dpdkBurst   = "512"
	dpdkPages   = 25 // huge ones, of testpmd
)

// runDPDK is dpdk_*: what the devices receive is sent on by ours, in a handler or in a native stage, and by testpmd. On
// veth, packets go round between the two ends of a pair.
func runDPDK(veth, handler bool) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		testpmd, err := b.dpdkTools()
		if err != nil {
			return err
		}
		devices := []string{"net_null0"}
		in := func(argv []string) []string { return argv }
		args := []string{"--handler=" + fmt.Sprint(handler), "--batch", dpdkBurst}
		if veth {
			c, err := b.cable(ctx)
			if err != nil {
				return err
			}
			defer c.close()
			if err := c.join(ctx); err != nil {
				return err
			}
			devices = []string{"net_af_packet0,iface=veth0,framecnt=2048", "net_af_packet1,iface=veth1,framecnt=2048"}
			in = func(argv []string) []string { return c.in(c.send, argv) }
			args = append(args, "--b", "vdev:"+devices[1], "--first", dpdkBurst)
		}
		args = append(args, "--a", "vdev:"+devices[0])
		memory, pages := testpmdMemory(dpdkPages)
		r.compareWith("dpdk-testpmd, io forwarding on the same devices, bursts of " + dpdkBurst + ", " + pages)
		ours := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.last(ctx, d, in(b.ours("dpdk.lua", append(args, "--seconds", text(d*10/11))...))...)
			return forwarded(f), err
		}
		peer := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.testpmd(ctx, d, in(testpmdArgs(testpmd, devices, memory)), len(devices))
			return forwarded(f), err
		}
		if veth {
			ours, peer = withSoftirq(ours), withSoftirq(peer)
		}
		return r.compare(ctx, ours, peer)
	}
}

// forwarded is packets per CPU second, in millions; both poll, so that a core that others use too does not matter.
func forwarded(f figures) sample {
	return sample{f["packets"] / f["cpu_seconds"] / 1e6,
		figures{"mpps": f["packets"] / f["seconds"] / 1e6, "cpus": f["cpu_seconds"] / f["seconds"], "lost": f["lost"]}}
}

// dpdkTools is the path of dpdk-testpmd, where our own library is there too.
func (b *bench) dpdkTools() (string, error) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(b.opts.Exe), dpdkLibrary)); err != nil {
		return "", errUnavailable{"needs " + dpdkLibrary + " beside the program: make build, where libdpdk is"}
	}
	testpmd := b.find("dpdk-testpmd")
	if testpmd == "" {
		return "", errUnavailable{"needs dpdk-testpmd (dpdk)"}
	}
	return testpmd, nil
}

// join puts both ends of a pair into the sending namespace: veth0 is joined to veth1.
func (c *cable) join(ctx context.Context) error {
	for _, args := range []string{
		"link del veth0", "link add veth0 type veth peer name veth1",
		"link set veth0 addrgenmode none up", "link set veth1 addrgenmode none up",
	} {
		if _, err := c.b.output(ctx, append([]string{c.ip, "-n", c.send}, strings.Fields(args)...)...); err != nil {
			return fmt.Errorf("veth pair: %w", err)
		}
	}
	return nil
}

// testpmdMemory returns where testpmd's memory is, as arguments and in words: on huge pages where so many are free, as ours
// is.
func testpmdMemory(pages int) (argv []string, words string) {
	free, _ := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(free))); n >= pages {
		return []string{"--in-memory"}, "on huge pages"
	}
	return []string{"--no-huge", "-m", "512"}, fmt.Sprintf("without huge pages (%d of 2 MiB have to be free)", pages)
}

func testpmdArgs(testpmd string, devices, memory []string) []string {
	cores := fmt.Sprintf("@(0-%d)", runtime.NumCPU()-1)
	argv := []string{testpmd, "--lcores", "0" + cores + ",1" + cores, "--no-pci", "--no-telemetry", "--file-prefix", "daqiri-bench"}
	argv = append(argv, memory...)
	for _, d := range devices {
		argv = append(argv, "--vdev", d)
	}
	return append(argv, "--", "-i", "--forward-mode=io", "--burst="+dpdkBurst, "--nb-cores=1", "--total-num-mbufs=16384")
}

// testpmd has testpmd forward for d and reads its counters at both ends of that.
func (b *bench) testpmd(ctx context.Context, d time.Duration, argv []string, ports int) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, d+slack)
	defer cancel()
	cmd := b.command(ctx, argv...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("testpmd: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("testpmd: %w", err)
	}
	forwards, ended := make(chan struct{}), make(chan string, 1)
	go func() { ended <- listen(out, "packet forwarding", forwards) }()
	start := "start\n"
	if ports > 1 {
		start = "start tx_first 1\n"
	}
	var f figures
	if _, err = io.WriteString(in, start); err == nil {
		<-forwards
		time.Sleep(d / 10) // to warm up
		f, err = testpmdInterval(in, cmd.Process.Pid, d*9/10)
	}
	_, _ = io.WriteString(in, "quit\n")
	_ = in.Close()
	output := <-ended
	if failed := cmd.Wait(); failed != nil {
		err = programError("testpmd", failed, append(stderr.Bytes(), output...))
	}
	if err == nil {
		f["packets"], err = testpmdPackets(output, ports)
	}
	return f, err
}

// listen returns the output of a program until its end. It closes found when the output has some words, or ends.
func listen(from io.Reader, words string, found chan struct{}) string {
	var output strings.Builder
	lines := bufio.NewReader(from)
	for open := true; ; {
		line, err := lines.ReadString('\n')
		output.WriteString(line)
		if open && (err != nil || strings.Contains(line, words)) {
			close(found)
			open = false
		}
		if err != nil {
			return output.String()
		}
	}
}

// testpmdInterval asks for the ports' counters twice, d apart; the time between, and the process's.
func testpmdInterval(in io.Writer, pid int, d time.Duration) (figures, error) {
	var seconds, cpu [2]float64
	for k := range 2 {
		if k == 1 {
			time.Sleep(d)
		}
		if _, err := io.WriteString(in, "show port stats all\n"); err != nil {
			return nil, fmt.Errorf("testpmd: %w", err)
		}
		var err error
		seconds[k] = float64(time.Now().UnixNano()) / 1e9
		if cpu[k], err = cpuSeconds(pid); err != nil {
			return nil, err
		}
	}
	return figures{"seconds": seconds[1] - seconds[0], "cpu_seconds": cpu[1] - cpu[0]}, nil
}

// testpmdPackets is how many packets the ports have received between two readings of their counters.
func testpmdPackets(output string, ports int) (float64, error) {
	var counts []float64
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "RX-packets:" || words[2] != "RX-missed:" {
			continue
		}
		n, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return 0, fmt.Errorf("testpmd: %w", err)
		}
		counts = append(counts, n)
	}
	if len(counts) < 2*ports {
		return 0, fmt.Errorf("testpmd: it printed %d counters of ports, not %d", len(counts), 2*ports)
	}
	var sum float64
	for k := range ports {
		sum += counts[ports+k] - counts[k]
	}
	return sum, nil
}

// cpuSeconds is the CPU time of all threads of a process.
func cpuSeconds(pid int) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d: no CPU time to be read: %w", pid, os.ErrNotExist)
	}
	var sum float64
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if words := strings.Fields(string(text)); len(words) > 0 {
			ns, _ := strconv.ParseFloat(words[0], 64)
			sum += ns / 1e9
		}
	}
	return sum, nil
}
