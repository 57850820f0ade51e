#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Public headers compile alone, as C17 and as C++17, without a warning; internal headers compile alone as C17, and those
# of kernels also beside the graph's: no name means two things.
# usage: check_headers.sh SOURCE "CC" "CXX or empty" "flags for cgraph or empty"
set -u
cd "$1" || exit 1
cc=$2 cxx=$3 cgraph=$4
passed=0 failed=0 skipped=0

try() { # what, compiler and flags, header
    if printf '#include "%s"\n' "$3" | $2 -Wall -Wextra -Werror -pedantic -fsyntax-only -; then
        passed=$((passed + 1))
    else
        echo "FAILED: $3 as $1"
        failed=$((failed + 1))
    fi
}

for header in include/weft/*.h; do
    header=${header#include/}
    try C17 "$cc -x c -std=c17 -Iinclude" $header
    if [ -n "$cxx" ]; then
        try C++17 "$cxx -x c++ -std=c++17 -Iinclude" $header
    else
        skipped=$((skipped + 1))
    fi
done
# Bodies that are compiled once for each instruction set need its flags.
flags_of() {
    case $1 in
    *avx512*) echo -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma ;;
    *avx2*) echo -mavx2 -mfma -mf16c ;;
    esac
}
for header in $(find ir eval onnx passes sched kernels runtime viz tools check -name '*.h' | sort); do
    case $header in
    viz/*) [ -n "$cgraph" ] || { skipped=$((skipped + 1)); continue; } ;;
    check/peer_onednn.h) # where the peer is installed
        echo '#include <dnnl.h>' | $cc -E - >/dev/null 2>&1 || { skipped=$((skipped + 1)); continue; } ;;
    esac
    flags="-I. -Iinclude $cgraph $(flags_of "$header") -Wno-unused-parameter -Wno-unused-function"
    try C17 "$cc -x c -std=c17 -D_GNU_SOURCE $flags" "$header"
    case $header in
    kernels/*) try "C17 beside ir/ir.h and sched/sched.h" \
        "$cc -x c -std=c17 -D_GNU_SOURCE $flags -include ir/ir.h -include sched/sched.h" "$header" ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
