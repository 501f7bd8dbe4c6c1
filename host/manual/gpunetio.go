package manual

import (
	"cmp"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/kernel/doca"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
)

// GPUNetIO describes the supported parts of DOCA GPUNetIO.
var GPUNetIO = Topic{Name: "gpunetio", Short: "what of DOCA GPUNetIO is here", Parts: gpunetioParts}

func gpunetioParts() []Part {
	features := &Table{Columns: []string{"feature", "state", "how"}}
	for _, f := range preflight.GPUNetIO() {
		features.Rows = append(features.Rows, []string{f.Name, f.State, f.Words})
	}
	names := &Table{Columns: []string{"name of DOCA", "under this name", "what does the same here"}}
	for _, n := range preflight.GPUNetIONames() {
		same := "no"
		if n.Same {
			same = "yes"
		}
		names.Rows = append(names.Rows, []string{"`" + n.Name + "`", same, n.Here})
	}
	calls := &Table{Columns: []string{"host call", "what it does", "in Lua"}}
	for _, h := range preflight.GPUNetIOHostCalls() {
		calls.Rows = append(calls.Rows, []string{"`" + strings.Join(h.Names, "`, `") + "`", h.Does, h.Lua})
	}
	functions := &Table{Columns: []string{"header", "state", "functions", "what is different"}}
	for _, f := range doca.Functions() {
		functions.Rows = append(functions.Rows, []string{"`" + f.Header + "`", f.State, "`" + strings.Join(f.Names, "`, `") + "`", cmp.Or(f.Note, "nothing")})
	}
	return []Part{
		{Words: "Kernels that send and receive ([kernels](kernels.md)) post into rings in pinned memory. A proxy on the CPU passes what they post to an engine, so no NIC " +
			"is needed that a GPU can ring. `daqiri-run inspect` prints the first table for a configuration that asks for GPUNetIO (`engine: gpunetio`, `gpunetio.tx_kernel`)."},
		{Table: features},
		{Head: "names"},
		{Words: "Headers of DOCA's names have its device functions, listed below; for other names `gn.h`, the script or a shipped script does the same:"},
		{Table: names},
		{Head: "host calls"},
		{Words: "What the host part of a program does with DOCA's libraries, a script does so. The scripts `gn_*` are the samples' host parts:"},
		{Table: calls},
		{Head: "device functions"},
		{Words: "Sources written for DOCA compile unchanged: the headers have its file names, functions of the host that launch kernels are left out, and `entry` may name an instance " +
			"of a template (`put_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>`). Both dialects are one: options of a call at run time, and template parameters. Here: does what it does there. " +
			"Nothing: accepted, as there is nothing to do without a NIC's registers. Impossible: a call is an error of the compiler."},
		{Table: functions},
		{Words: "Kernels are compiled by NVRTC and by the host's compiler. Tests run them on the host. Kernels with functions of `gn.h` also ran on an H100, and their checks passed ([figures](measurements.md#kernels-that-send-and-receive-h100-2026-11-26))."},
	}
}
