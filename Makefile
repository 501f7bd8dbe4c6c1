# The two commands: `make run` shows a pipeline at work (it needs Go and gcc), `make test` tests everything (it
# installs what the tests need where it may, and elsewhere skips with reasons). `make help` lists the rest.

GO    ?= go
BUILD := build

# The usual checks, and those of package comments, receiver names and the form of comments on exported names.
STATICCHECK_VERSION := v0.8.2
STATICCHECK_CHECKS  := inherit,ST1000,ST1016,ST1020,ST1021,ST1022
export STATICCHECK  := $(CURDIR)/$(BUILD)/staticcheck-$(STATICCHECK_VERSION)

# An S3 server for the tests.
VERSITYGW_VERSION := v1.8.0
export VERSITYGW  := $(CURDIR)/$(BUILD)/versitygw-$(VERSITYGW_VERSION)

# Tests of the tests package that have a step of their own.
FORMAT_TESTS := ^Test(Architecture|Readmes|Format|MarkdownLinks)
C_TESTS      := ^TestNative
ARM64_TESTS  := ^TestArm64
# Of bindings: the whole API, under the address sanitizer where the C compiler has it; and what the race detector makes slow.
API_TESTS    := ^Test(Members|APIFuzz|FormatRoundTrip)
ASAN          = $(shell echo 'int main(void) { return 0; }' | $(CC) -fsanitize=address -x c - -o /dev/null 2>/dev/null && echo -asan)

# $(call step,NAME,COMMAND): say what runs and how long it took; where it fails, name it and stop.
step = @$(timed)
timed = start=$$(date +%s); echo "== $(1)"; \
	if { $(2); }; then echo "== $(1): done in $$(($$(date +%s) - start)) s"; \
	else echo "== $(1): FAILED after $$(($$(date +%s) - start)) s"; exit 1; fi

# $(call beside,NAME,COMMAND,NAME,COMMAND): two steps at once, of which the first works and the second mostly waits. The
# output of the first comes when both are done.
beside = @( $(call timed,$(1),$(2)) ) >$(COUNTS).log 2>&1 & first=$$!; ( $(call timed,$(3),$(4)) ); code=$$?; \
	wait $$first || code=1; cat $(COUNTS).log; rm $(COUNTS).log; exit $$code

# $(call go_test,FLOOR): go test with its output made readable; `make test` keeps the counts of each step for a sum at its
# end. Continuous integration fails where fewer tests than FLOOR pass, and where one skips that .ci/skips does not list.
go_test = $(GO) run ./tests/report $(KEEP) $(if $(CI),-floor $(1) -skips .ci/skips) -- -count 1 -timeout 40m
COUNTS := $(BUILD)/counts.$(shell echo $$PPID-$$(date +%s))

# The dpdk engine is a library beside the program, made where libdpdk is.
DPDK_LIB     := libdaqiri_dpdk.so
DPDK_CFLAGS  := -std=gnu11 -O3 -D_GNU_SOURCE -Wall -Wextra -fPIC -shared -fvisibility=hidden -DALLOW_EXPERIMENTAL_API
DPDK_INCLUDE  = $$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g')
DPDK_LINK     = $$(pkg-config --libs libdpdk)
DPDK_SOURCES := $(wildcard native/engine/dpdk/plugin/*.c)
DPDK_HEADERS := $(shell find native -name '*.h')

.PHONY: build run test soak mutate bpf ptx gpu-suite docs deps lint fmt install release clean help
.NOTPARALLEL:

build: ## build ./daqiri-run (the default)
	$(GO) build ./cmd/daqiri-run
	$(dpdk)

# The headers of libdpdk make noise of their own: its include folders are system ones.
define dpdk
@if pkg-config --exists libdpdk 2>/dev/null; then $(MAKE) --no-print-directory $(DPDK_LIB); \
	else echo "no libdpdk: built without the dpdk engine"; fi
endef

$(DPDK_LIB): $(DPDK_SOURCES) $(DPDK_HEADERS)
	$(CC) $(DPDK_CFLAGS) -Inative $(DPDK_INCLUDE) $(DPDK_SOURCES) -o $@ $(DPDK_LINK)

run: build ## record traffic with scripts/capture.lua
	./daqiri-run scripts/capture.lua

test: KEEP := -append $(COUNTS)
test: deps lint ## run every test
	$(call step,build,$(MAKE) --no-print-directory build)
	$(call step,C units under sanitizers,$(call go_test,270) -parallel 4 -run '$(C_TESTS)' ./tests)
	$(call step,golden scripts,./daqiri-run test scripts $(wildcard tests/golden))
	$(call step,arm64,$(call go_test,3) -run '$(ARM64_TESTS)' ./tests)
	$(call step,packages with the race detector,$(call go_test,980) -race -skip '$(API_TESTS)' ./tests/vm $$($(GO) list ./... | grep -v -e '/tests$$' -e '/tests/vm$$'))
	$(call beside,random calls$(if $(ASAN), under the address sanitizer),$(RANDOM_CALLS),whole programs,$(WHOLE_PROGRAMS))
	@awk '{ p += $$1; f += $$2; s += $$3 } END { print p " passed, " f " failed, " s " skipped" }' $(COUNTS)
	@rm $(COUNTS)

# A collection for each 4 times as much garbage takes a third less time: sessions come and go by the thousand.
RANDOM_CALLS   = GOGC=400 DAQIRI_FUZZ_SECONDS=30 nice $(call go_test,57) $(ASAN) -run '$(API_TESTS)' ./bindings
WHOLE_PROGRAMS = $(call go_test,250) -race -skip '$(FORMAT_TESTS)|$(C_TESTS)|$(ARM64_TESTS)' ./tests

MINUTES ?= 10

soak: build ## full rate and faults for MINUTES=10; SEED= repeats a run, FAULTS= chooses, LOSSY=1 must fail, CLOCK=1 steps the clock
	$(GO) run ./tests/soak -minutes $(MINUTES) -faults '$(FAULTS)' $(if $(SEED),-seed $(SEED)) $(if $(LOSSY),-lossy 1000000) $(if $(CLOCK),-clock)

mutate: ## put small faults into copies of the project and report which no test sees; ONLY=PATTERN chooses, JOBS= at a time
	$(GO) run ./tests/mutate -only '$(ONLY)' $(if $(JOBS),-jobs $(JOBS))

bpf: ## build the eBPF object of the engine xdp anew, after a change of its source (clang 14, llvm-strip)
	cd native/engine/xdp/bpf && ./build.sh steer.bpf.o

ptx: ## build the GPU kernels anew, after a change of their sources (clang 14)
	cd native/kernels && ./build.sh .

# One file for a machine with a GPU and without Go: what it packs is compressed, and unpacked there into TMPDIR.
GPU_SUITE := tests/gpu/suite/packed
gpu-suite: ## make build/gpu-suite, which shows on a machine with a GPU, without Go, what runs there and how fast
	rm -f $(GPU_SUITE)/*
	$(GO) build -ldflags '-s -w' -o $(GPU_SUITE)/daqiri-run ./cmd/daqiri-run
	$(GO) test -c -ldflags '-s -w' -o $(GPU_SUITE)/session.test ./runtime/session
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Inative -Itests/native -o $(GPU_SUITE)/check tests/gpu/kernels/check.c native/kernels/*.c -ldl -lm
	gzip $(GPU_SUITE)/*
	cp scripts/gpu_*.golden $(GPU_SUITE)
	$(GO) build -ldflags '-s -w' -o $(BUILD)/gpu-suite ./tests/gpu/suite
	rm -f $(GPU_SUITE)/*
	@ls -l $(BUILD)/gpu-suite

docs: ## write the documents that are made from tables
	$(GO) test ./host/cli -run TestDocuments -update
	! command -v dot >/dev/null || dot -Tsvg docs/packet.dot | sed 's/[ \t]*$$//' >docs/packet.svg

deps: ## install what the tests need, where that is allowed
	$(call step,tools for the tests,tests/deps.sh)
	@mkdir -p $(BUILD)
	$(call step,an S3 server for the tests,$(fetch_versitygw))

# Where it cannot be fetched, the tests that need it skip.
fetch_versitygw = [ -x $(VERSITYGW) ] || { dir=$$(mktemp -d $(CURDIR)/$(BUILD)/fetch.XXXXXX) && \
	GOBIN=$$dir $(GO) install -ldflags='-s -w' github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION) && \
	mv $$dir/versitygw $(VERSITYGW); rm -r $$dir; } || echo "skip  versitygw: could not be fetched"

lint: ## layers, format, vet and staticcheck
	@mkdir -p $(BUILD)
	$(call step,layers and format,$(call go_test,50) -run '$(FORMAT_TESTS)' ./tests)
	$(call step,go vet,$(GO) vet ./...)
	$(call step,staticcheck,$(run_staticcheck))

# Where staticcheck cannot be fetched, lint goes on without it, unless DAQIRI_REQUIRE names it.
fetch_staticcheck = dir=$$(mktemp -d $(CURDIR)/$(BUILD)/fetch.XXXXXX) && \
	{ GOBIN=$$dir $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION) && \
	mv $$dir/staticcheck $(STATICCHECK); rm -r $$dir; }
run_staticcheck = if [ -x $(STATICCHECK) ] || { $(fetch_staticcheck); [ -x $(STATICCHECK) ]; }; \
	then $(STATICCHECK) -checks $(STATICCHECK_CHECKS) ./...; \
	else echo "skip  staticcheck: could not be fetched"; \
	case ",$$DAQIRI_REQUIRE," in *,staticcheck,*) false;; esac; fi

fmt: ## format Go and C files in place
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')
	clang-format -i $$(git ls-files --cached --others --exclude-standard '*.[ch]')

PREFIX  ?= /usr/local
DESTDIR ?=
ROOT     = $(DESTDIR)$(PREFIX)

install: build ## install below PREFIX=/usr/local: program, manual pages, completion for bash, zsh and fish, the Python reader
	install -d $(ROOT)/bin $(ROOT)/lib/daqiri-run $(ROOT)/share/man/man1 $(ROOT)/share/bash-completion/completions \
		$(ROOT)/share/zsh/site-functions $(ROOT)/share/fish/vendor_completions.d $(ROOT)/share/daqiri-run
	install -m 755 daqiri-run $(ROOT)/lib/daqiri-run/
	[ ! -e $(DPDK_LIB) ] || install -m 755 $(DPDK_LIB) $(ROOT)/lib/daqiri-run/
	ln -sf ../lib/daqiri-run/daqiri-run $(ROOT)/bin/daqiri-run
	./daqiri-run man $(ROOT)/share/man/man1
	./daqiri-run completion bash >$(ROOT)/share/bash-completion/completions/daqiri-run
	./daqiri-run completion zsh >$(ROOT)/share/zsh/site-functions/_daqiri-run
	./daqiri-run completion fish >$(ROOT)/share/fish/vendor_completions.d/daqiri-run.fish
	install -m 644 docs/api/daqiri.d.lua LICENSE $(ROOT)/share/daqiri-run/

VERSION  = $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' bindings/process.go)
ARCH     = $(shell $(GO) env GOARCH)
RELEASE  = $(BUILD)/daqiri-run-$(VERSION)-linux-$(ARCH)
DEB_TREE = $(BUILD)/deb-$(ARCH)

release: build ## make build/daqiri-run-VERSION-linux-ARCH.tar.gz, to be unpacked below /usr/local, and a .deb
	rm -rf $(RELEASE) $(DEB_TREE)
	$(MAKE) --no-print-directory install PREFIX= DESTDIR=$(CURDIR)/$(RELEASE)
	tar -C $(BUILD) --sort=name --owner=0 --group=0 --numeric-owner -czf $(RELEASE).tar.gz $(notdir $(RELEASE))
	$(MAKE) --no-print-directory install PREFIX=/usr DESTDIR=$(CURDIR)/$(DEB_TREE)
	install -d $(DEB_TREE)/DEBIAN
	printf 'Package: daqiri-run\nVersion: %s\nArchitecture: %s\nMaintainer: daqiri-run\nSection: net\nPriority: optional\nDepends: libc6\nSuggests: libpcap0.8, dpdk\nDescription: Lua scripts that drive packet pipelines\n Receives, filters, forwards, transmits and records packets without loss, and accounts\n for every one. For people who run instruments.\n' \
		$(VERSION) $(ARCH) >$(DEB_TREE)/DEBIAN/control
	dpkg-deb --root-owner-group --build $(DEB_TREE) $(RELEASE).deb
	rm -rf $(RELEASE) $(DEB_TREE)

clean: ## remove what was built; captures stay
	rm -rf $(BUILD) daqiri-run $(DPDK_LIB)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
