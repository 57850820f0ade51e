#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files with which outsiders found defects: each runs, at every processor level that is there, gives what the reference
# evaluator gives, and, of the layout texts, leaves no step to that evaluator.
# usage: check_defects.sh WEFT FOLDER [LEVEL…]
set -u
weft=$1 folder=$2
shift 2
[ -d "$folder" ] || { echo "there is no folder $folder"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# check NAME OPTION…: weft run by kernels and by the evaluator
check() {
    name=$1
    shift
    rm -rf "$scratch/wanted"
    "$weft" run "$@" --reference --keep-inputs -o "$scratch/wanted" >"$scratch/log" 2>&1 || {
        echo "FAILED: $name by the evaluator"
        cat "$scratch/log"
        failed=$((failed + 1))
        return
    }
    for level in '' $levels; do
        if shown=$("$weft" run "$@" ${level:+--cpu "$level"} --check "$scratch/wanted" 2>&1); then
            passed=$((passed + 1))
        else
            echo "FAILED: $name ${level:-(all levels)}"
            echo "$shown"
            failed=$((failed + 1))
        fi
        case $name$shown in
        layout*"(0 by the reference evaluator"*) ;;
        layout*)
            echo "FAILED: $name: steps run in the reference evaluator"
            failed=$((failed + 1))
            ;;
        esac
    done
}

levels=$*
# A batch of none at the hint; the pack of weights followed from it.
check crit_conv_empty_hint "$folder/crit_conv_empty_hint.onnx" -i "$folder/crit_x3.npy"
# The pack of weights follows from the padding modulo the stride: right at 7, wrong at 8.
check ct_min_7 "$folder/ct_min.onnx" -i "$folder/ct_min_x7.npy"
check ct_min_8 "$folder/ct_min.onnx" -i "$folder/ct_min_x8.npy"
for name in sink_bcast_min pool_ceil split1000 split_concat1000; do
    check $name "$folder/$name.onnx"
done
graphs=$(grep -c '^graph @' "$folder/layout_failing.weft")
graph=0
while [ $graph -lt "$graphs" ]; do
    check "layout_failing, graph $graph" "$folder/layout_failing.weft" --graph $graph
    graph=$((graph + 1))
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
