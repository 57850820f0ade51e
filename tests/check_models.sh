#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every model folder (model.onnx, input_N.npy, output_N.npy) that weft supports gives the expected outputs. Where inputs
# and outputs lie in folders below it, one for each size, one plan runs them all. Nothing is left to the reference
# evaluator.
# usage: check_models.sh WEFT [--all] FOLDER…     --all: none may be unsupported
set -u
weft=$1
shift
all=
[ "${1:-}" != --all ] || { all=yes; shift; }
passed=0 failed=0 skipped=0

# run_model MODEL OPTION…: weft run, which has to find a kernel for every step
run_model() {
    shown=$("$weft" run "$@")
    code=$?
    echo "$shown"
    case $shown in *"(0 by the reference evaluator"*) return $code ;; esac
    [ $code = 0 ] && echo "FAILED: $1: steps run in the reference evaluator; weft run --kernels says which"
    return 1
}

# check_model FOLDER
check_model() {
    if ls "$1"/output_0.npy >/dev/null 2>&1; then
        run_model "$1/model.onnx" --check "$1"
        return
    fi
    model=$1/model.onnx
    set -- "$1"/*/output_0.npy
    for file in "$@"; do
        shift
        set -- "$@" --check "${file%/output_0.npy}"
    done
    run_model "$model" "$@"
}

for folder in "$@"; do
    [ -f "$folder/model.onnx" ] || continue
    reason=$("$weft" check "$folder/model.onnx" 2>&1)
    code=$?
    if [ $code = 1 ] && [ -z "$all" ] && echo "$reason" | grep -q 'not supported\|unsupported'; then
        echo "skipped: $folder"
        echo "$reason"
        skipped=$((skipped + 1))
    elif [ $code != 0 ]; then
        echo "FAILED: weft check $folder/model.onnx: exit code $code"
        echo "$reason"
        failed=$((failed + 1))
    elif check_model "$folder"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no models here"; exit 77; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
