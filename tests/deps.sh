#!/bin/sh
# deps.sh LEVEL installs what the tests of a level, test or deep, need and this machine lacks, on Debian and Ubuntu, where it may: as root,
# or through sudo without a password. Does nothing, quickly, where all is there. What cannot be installed is named and no error:
# the tests that need it skip (tests/README.md). Safe to run twice at once: apt waits for its own lock.
set -u
PATH=$PATH:/usr/sbin:/sbin

level=${1:-deep}
missing= packages=
# want NAME PACKAGE COMMAND...: PACKAGE brings NAME, which is there if COMMAND succeeds.
want() {
    name=$1 package=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    missing="$missing $name"
    case " $packages " in *" $package "*) ;; *) packages="$packages $package" ;; esac
}
has() { command -v "$1"; }
any() { for path; do [ -e "$path" ] && return 0; done; return 1; }
static_busybox() { has busybox && ! ldd "$(command -v busybox)"; }
module() { # of the distribution's Python where there is one, so that one Python has all modules
    python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' "$1"
}

look() {
    missing= packages=
    want gcc gcc has gcc
    want libc libc6-dev any /usr/include/stdio.h
    want git git has git
    want clang-format clang-format has clang-format
    want tshark tshark has tshark
    want capinfos wireshark-common has capinfos
    want chromium chromium has chromium
    want tcpdump tcpdump has tcpdump
    want tcpreplay tcpreplay has tcpreplay
    want scapy python3-scapy module scapy
    want numpy python3-numpy module numpy
    want npm npm has npm
    want astropy python3-astropy module astropy
    want h5py python3-h5py module h5py
    want h5dump hdf5-tools has h5dump
    want jsonschema python3-jsonschema module jsonschema
    want pip python3-pip module pip
    want venv python3-venv module ensurepip
    want setuptools python3-setuptools module setuptools
    want wheel python3-wheel module wheel
    want iperf3 iperf3 has iperf3
    want prometheus prometheus has promtool
    want nc netcat-openbsd has nc
    want socat socat has socat
    want ip iproute2 has ip
    want ethtool ethtool has ethtool
    want setarch util-linux has setarch
    want testpmd dpdk-dev has dpdk-testpmd
    want libpcap libpcap0.8 any /usr/lib/*/libpcap.so.* /usr/lib*/libpcap.so.* /lib/*/libpcap.so.*
    want pkg-config pkg-config has pkg-config
    want dpdk libdpdk-dev pkg-config --exists libdpdk
    want testpmd dpdk has dpdk-testpmd
    want lua5.1 lua5.1 has lua5.1
    want libibverbs libibverbs-dev any /usr/include/infiniband/verbs.h
    want librdmacm librdmacm-dev any /usr/include/rdma/rdma_cma.h
    want soft-roce ibverbs-providers any /usr/lib/*/libibverbs/librxe-rdmav*.so /usr/lib*/libibverbs/librxe-rdmav*.so
    want rdma iproute2 has rdma
    want rping rdmacm-utils has rping
    want perftest perftest has ib_send_bw
    want ccache ccache has ccache
    [ "$level" = deep ] || return 0
    want clang clang has clang
    want clang-rt libclang-rt-14-dev any /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.msan-*.a
    want llvm-strip llvm has llvm-strip
    want qemu-system qemu-system-x86 has qemu-system-x86_64
    want busybox busybox-static static_busybox
    want modprobe kmod has modprobe
    want xz xz-utils has xz
    want cpio cpio has cpio
    want arm64 gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
    want arm64-libc libc6-dev-arm64-cross any /usr/aarch64-linux-gnu/lib/libc.a
    if ! has qemu-aarch64 >/dev/null; then
        want qemu-user qemu-user-static has qemu-aarch64-static
    fi
}

# node_packages installs what tools/node/package-lock.json lists beside it, if it is not there.
node_packages() {
    at=$(dirname "$0")/tools/node
    cmp -s "$at/package-lock.json" "$at/node_modules/lock.json" && return
    has npm >/dev/null || return
    fresh=$(mktemp -d "$at/new.XXXXXX") || return
    cp "$at/package.json" "$at/package-lock.json" "$fresh"
    if (cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund) >"$fresh/log" 2>&1; then
        cp "$at/package-lock.json" "$fresh/node_modules/lock.json"
        rm -rf "$at/node_modules"
        mv -T "$fresh/node_modules" "$at/node_modules" 2>/dev/null
    else
        tail -n 5 "$fresh/log"
        echo "could not install the packages of $at: the tests that need these will skip"
    fi
    rm -rf "$fresh"
}
trap node_packages EXIT

look
[ -n "$missing" ] || exit 0
echo "missing:$missing"
if ! has apt-get >/dev/null; then
    echo "no apt-get here: the tests that need these will skip"
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "not root, and sudo asks for a password: the tests that need these will skip, or run: sudo apt-get install$packages"
    exit 0
fi

# No questions: tshark would ask who may capture, iperf3 whether to run a server.
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" </dev/null; }
install() { apt install --no-install-recommends "$@"; }

log=$(mktemp) || exit 0
trap 'rm -f "$log"; node_packages' EXIT
echo "installing:$packages"
apt update >"$log" 2>&1
# One package that this release does not have must not keep the others away.
# shellcheck disable=SC2086 # a list of names
install $packages >>"$log" 2>&1 || for package in $packages; do install "$package" >>"$log" 2>&1; done
look
if [ -n "$missing" ]; then
    tail -n 20 "$log"
    echo "could not install what brings:$missing: the tests that need these will skip"
fi
