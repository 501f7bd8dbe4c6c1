#!/bin/sh
# Builds steer.bpf.c into the file named, here. The bytes depend on clang's version alone: no path and no debug
# information but BTF goes in.
set -eu
clang -target bpf -mcpu=v3 -O2 -g -ffreestanding -Wall -Wextra -Werror -fdebug-compilation-dir=. -I../../.. \
    -c steer.bpf.c -o "$1"
llvm-strip -g "$1"
