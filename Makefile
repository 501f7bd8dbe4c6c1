# `make run` shows a pipeline at work (it needs Go and gcc), `make test` tests it (it installs what the tests need where it may, and
# elsewhere skips with reasons). `make help` lists the rest.

GO    ?= go
BUILD := build

# The dpdk engine is a library beside the program, made where libdpdk is.
DPDK_LIB     := libdaqiri_dpdk.so
DPDK_CFLAGS  := -std=gnu11 -O3 -D_GNU_SOURCE -Wall -Wextra -fPIC -shared -fvisibility=hidden -DALLOW_EXPERIMENTAL_API
DPDK_INCLUDE  = $$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g')
DPDK_LINK     = $$(pkg-config --libs libdpdk)
DPDK_SOURCES := $(wildcard native/engine/dpdk/plugin/*.c)
DPDK_HEADERS := $(shell find native -name '*.h')

.PHONY: build run test test-deep test-busy check soak mutate bpf ptx gpu-suite docs deps fmt install wheel release clean help
.NOTPARALLEL:

build: ## build ./daqiri-run and ./daqiri-bench (the default): 2 minutes the first time
	@[ -e daqiri-run ] || echo "The first build compiles the native engine, which takes about two minutes on two cores. Packages as they are done:"
	$(GO) build -v -o . ./cmd/...
	$(dpdk)

# The headers of libdpdk make noise of their own: its include folders are system ones.
define dpdk
@if pkg-config --exists libdpdk 2>/dev/null; then $(MAKE) --no-print-directory $(DPDK_LIB); \
	else echo "no libdpdk: built without the dpdk engine"; fi
endef

$(DPDK_LIB): $(DPDK_SOURCES) $(DPDK_HEADERS)
	$(CC) $(DPDK_CFLAGS) -Inative $(DPDK_INCLUDE) $(DPDK_SOURCES) -o $@ $(DPDK_LINK)

run: build ## record traffic with scripts/network/capture.lua
	./daqiri-run scripts/network/capture.lua

# What each level runs: tests/levels. Failed tests are run again, which the last lines show; FLAKY=0 turns that off.
SUITE := $(GO) run ./tests/suite

test: ## every package, C unit, golden script and whole program: 8 to 10 minutes on two cores
	$(SUITE) test

test-deep: ## static analysis, further sanitizers, race detector, arm64, virtual machines: 20 minutes
	$(SUITE) deep

check: ## format, layers, vet and tests of what the edited files reach: under a minute
	$(SUITE) check

ROUNDS ?= 1

test-busy: ## `make test` ROUNDS=1 times beside seven busy processes; counts flaky tests by name
	$(SUITE) busy -rounds $(ROUNDS)

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
	$(GO) build -ldflags '-s -w' -o $(GPU_SUITE)/ ./cmd/...
	$(GO) test -c -ldflags '-s -w' -o $(GPU_SUITE)/session.test ./runtime/session/contract
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Inative -Itests/native -o $(GPU_SUITE)/check tests/gpu/kernels/check.c native/kernels/*.c -ldl -lm
	gzip $(GPU_SUITE)/*
	cp scripts/gpu/gpu_*.golden $(GPU_SUITE)
	$(GO) build -ldflags '-s -w' -o $(BUILD)/gpu-suite ./tests/gpu/suite
	rm -f $(GPU_SUITE)/*
	@ls -l $(BUILD)/gpu-suite

docs: ## write the documents that are made from tables
	$(GO) test ./host/cli -run TestDocuments -update
	! command -v dot >/dev/null || dot -Tsvg docs/packet.dot | sed 's/[ \t]*$$//' >docs/packet.svg

deps: ## install the Debian packages that the tests need, where that is allowed
	tests/deps.sh deep

fmt: ## format Go and C files in place
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')
	clang-format -i $$(git ls-files --cached --others --exclude-standard '*.[ch]')

PREFIX  ?= /usr/local
DESTDIR ?=
ROOT     = $(DESTDIR)$(PREFIX)

install: build ## install below PREFIX=/usr/local: program, manual pages, completion for bash, zsh and fish, the Python reader
	install -d $(ROOT)/bin $(ROOT)/lib/daqiri-run $(ROOT)/share/man/man1 $(ROOT)/share/bash-completion/completions \
		$(ROOT)/share/zsh/site-functions $(ROOT)/share/fish/vendor_completions.d $(ROOT)/share/daqiri-run
	install -m 755 daqiri-run daqiri-bench $(ROOT)/lib/daqiri-run/
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

# A Python with pip, setuptools and wheel: the distribution's, where there is one. It builds in a copy, because it leaves files beside the source.
PYTHON ?= $(or $(wildcard /usr/bin/python3),python3)

wheel: ## make build/daqiri_run_reader-VERSION-py3-none-any.whl, the Python package
	rm -rf $(BUILD)/wheel
	install -d $(BUILD)/wheel/daqiri_run
	cp python/pyproject.toml python/README.md LICENSE $(BUILD)/wheel
	cp python/daqiri_run/*.py python/daqiri_run/py.typed $(BUILD)/wheel/daqiri_run
	$(PYTHON) -m pip wheel --quiet --no-index --no-deps --no-build-isolation -w $(BUILD) $(BUILD)/wheel
	rm -rf $(BUILD)/wheel

release: build wheel ## make build/daqiri-run-VERSION-linux-ARCH.tar.gz, to be unpacked below /usr/local, a .deb, and the wheel
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
	rm -rf $(BUILD) daqiri-run daqiri-bench $(DPDK_LIB)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
