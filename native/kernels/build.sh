#!/bin/sh
# Compiles the PTX modules to the given folder. The output depends only on clang's version.
set -eu
build() {
    out=$1
    shift
    clang -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx75 -nocudainc -nocudalib \
        -O3 -Wall -Wextra -Werror -I.. "$@" -S kernels.cu -o "$out"
}
build "$1/moves.ptx"
build "$1/sums.ptx" -DSUMS
build "$1/packed.ptx" -DPACKED
build "$1/int4.ptx" -DFROM=int4
build "$1/int8.ptx" -DFROM=int8
build "$1/int16.ptx" -DFROM=int16
build "$1/int32.ptx" -DFROM=int32
