#!/bin/sh
# Builds steer.bpf.c into the named file in this folder. The bytes depend only on clang's version: they contain
# no path and, apart from BTF, no debug information.
set -eu
clang -target bpf -mcpu=v3 -O2 -g -ffreestanding -Wall -Wextra -Werror -fdebug-compilation-dir=. -I../../.. \
    -c steer.bpf.c -o "$1"
llvm-strip -g "$1"
