#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every model folder (model.onnx, input_N.npy, output_N.npy) that weft supports gives the expected outputs.
# usage: check_models.sh WEFT [--all] FOLDER…     --all: none may be unsupported
set -u
weft=$1
shift
all=
[ "${1:-}" != --all ] || { all=yes; shift; }
passed=0 failed=0 skipped=0
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
    elif "$weft" run "$folder/model.onnx" --check "$folder"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no models here"; exit 77; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
