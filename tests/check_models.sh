#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every model folder (model.onnx, input_N.npy, output_N.npy) that weft supports gives the expected outputs.
# usage: check_models.sh WEFT FOLDER…
set -u
weft=$1
shift
passed=0 failed=0 skipped=0
for folder in "$@"; do
    [ -f "$folder/model.onnx" ] || continue
    if ! reason=$("$weft" check "$folder/model.onnx" 2>&1); then
        echo "skipped: $folder"
        echo "$reason"
        skipped=$((skipped + 1))
    elif "$weft" run "$folder/model.onnx" --check "$folder"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no models here"; exit 77; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
