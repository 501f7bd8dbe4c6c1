package preflight

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel/doca"
)

// docaNames are the functions, headers and samples named in the DOCA GPUNetIO guide and on the page of its open version.
var docaNames = strings.Fields(`
	doca_gpu_create doca_gpu_dev_rdma_* doca_gpu_dev_verbs_poll_cq_* doca_gpu_dev_verbs_put doca_gpu_dev_verbs_submit
	doca_gpu_dev_verbs_wqe_prepare_* doca_gpu_packet_processing doca_gpu_rdma_get_info doca_gpu_verbs_cpu_proxy_progress
	doca_gpu_verbs_create_qp_hl doca_gpu_verbs_export_cq doca_gpu_verbs_export_qp doca_gpunetio_dev_dma doca_gpunetio_dev_eth_rxq
	doca_gpunetio_dev_eth_txq doca_gpunetio_dev_rdma doca_gpunetio_dev_verbs_counter doca_gpunetio_dev_verbs_cq
	doca_gpunetio_dev_verbs_onesided doca_gpunetio_dev_verbs_qp doca_gpunetio_dma_memcpy doca_gpunetio_rdma_client_server_write
	doca_gpunetio_send_wait_time doca_gpunetio_simple_receive doca_gpunetio_simple_send doca_gpunetio_verbs_* doca_verbs_qp_modify`)

var codeWord = regexp.MustCompile("`([^`]+)`")

// TestGPUNetIONames checks that each of docaNames has a row, that a row's equivalents exist in kernel headers or in shipped scripts, and that the
// list of functions has all of the headers with DOCA's names.
func TestGPUNetIONames(t *testing.T) {
	text := ""
	for _, header := range native.KernelHeaders() {
		text += header
	}
	headers, listed := map[string]string{}, map[string]bool{}
	doca.AddHeaders(headers)
	for _, f := range doca.Functions() {
		for _, name := range f.Names {
			listed[name] = true
		}
	}
	function := func(name string) bool {
		return listed[name] || regexp.MustCompile(`\b`+name+`\(`).MatchString(text)
	}
	want := slices.Clone(docaNames)
	for _, row := range GPUNetIONames() {
		k := slices.Index(want, row.Name)
		if k < 0 {
			t.Errorf("%s: twice, or no name of DOCA's pages", row.Name)
			continue
		}
		want = slices.Delete(want, k, k+1)
		for _, m := range codeWord.FindAllStringSubmatch(row.Here, -1) {
			word := m[1]
			if strings.HasSuffix(word, ".lua") {
				if _, err := os.Stat("../../../scripts/gpunetio/" + word); err != nil {
					t.Errorf("%s: %v", row.Name, err)
				}
			} else if (strings.HasPrefix(word, "gn_") || strings.HasPrefix(word, "doca_")) && word != "gn_tx" && !function(word) {
				t.Errorf("%s: no function %s", row.Name, word)
			}
			if row.Same && !strings.HasPrefix(word, "doca_") {
				t.Errorf("%s: %s is no name of DOCA", row.Name, word)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no row of %v", want)
	}
	for name, header := range headers { // functions that macros make are named by their parts
		for _, m := range regexp.MustCompile(`\b(doca_(?:priv_)?gpu_dev_\w*[a-z0-9])\(`).FindAllStringSubmatch(header, -1) {
			if !listed[m[1]] {
				t.Errorf("%s: %s is not in functions.txt", name, m[1])
			}
		}
	}
}

// TestGPUNetIOHostCalls checks that no name has two rows, and that each method and function that a row names is in the documents of the Lua API.
func TestGPUNetIOHostCalls(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/api/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	api := ""
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		api += string(text)
	}
	call := regexp.MustCompile(`\b(?:daqiri|k|i|c|sem|array|at)[.:][a-z_]+`)
	seen, calls := map[string]bool{}, 0
	for _, row := range GPUNetIOHostCalls() {
		for _, name := range row.Names {
			if seen[name] {
				t.Errorf("%s: twice", name)
			}
			seen[name] = true
		}
		for _, m := range codeWord.FindAllStringSubmatch(row.Lua, -1) {
			for _, word := range call.FindAllString(m[1], -1) {
				calls++
				if !regexp.MustCompile("## `" + regexp.QuoteMeta(word) + `\b`).MatchString(api) {
					t.Errorf("%s: there is no %s", row.Names[0], word)
				}
			}
		}
	}
	if calls < 20 {
		t.Errorf("%d calls found", calls)
	}
}
