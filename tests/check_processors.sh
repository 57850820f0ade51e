#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What only x86-64 has (its headers, built-ins, instructions) stands in files that are compiled for it alone, or behind
# an #if that names it or one of its levels. Inline assembly stands behind the name of some processor.
# usage: check_processors.sh SOURCE
set -u
cd "$1" || exit 1
# Compiled for x86-64 alone (kernels/meson.build), or by hand (bench/README.md).
alone='_avx(2|512)[a-z_]*\.(c|h|inc)$|^kernels/cpu_x86\.c$|^bench/f(igures_limit|loor_probe)\.c$'
alone="$alone"'|^kernels/(gemm/gemm_(lanes|transpose)|strip/pool_strips)\.inc$|^kernels/relayout/weave_level\.c$'
find include ir eval onnx codegen passes sched kernels plan runtime viz tools check examples tests bench \
    -name '*.[ch]' -o -name '*.inc' -o -name '*.def' | grep -vE "$alone" | sort | xargs awk '
    FNR == 1 { depth = 0 }
    /^ *# *if/ { condition[++depth] = $0 }
    /^ *# *elif/ { condition[depth] = $0 }
    /^ *# *else/ { condition[depth] = "" }
    /^ *# *endif/ { depth-- }
    function behind(pattern,    i)
    {
        for (i = 1; i <= depth; i++)
            if (condition[i] !~ /ifndef|!defined *\(?__x86/ && condition[i] ~ pattern)
                return 1
        return 0
    }
    { x86 = /[a-z]mmintrin\.h|x86[a-z]*intrin\.h|cpuid\.h|__builtin_(ia32_|cpu_supports)|[^a-z0-9_]_mm(256|512)?_/ }
    x86 && !behind("__x86_64__|WEFT_LEVEL *(==|>=?) *[12]|WEFT_LEVEL > 0|LANES *(==|>=?) *(8|16)|LANES > 4") {
        print FILENAME ":" FNR ": of x86-64, where no #if says so: " $0
        bad = 1
    }
    /__asm__/ && !/__asm__( volatile)?\("" *:/ && !behind("__(x86_64|aarch64)__") {
        print FILENAME ":" FNR ": assembly of some processor, where no #if says which: " $0
        bad = 1
    }
    END { exit bad }'
