#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Layouts are chosen for the kernels that then run: for every model folder, at every processor level and under every
# compile flag that changes what a kernel may do, `weft explain` counts no unit whose kernel is another than the one
# that was expected when layouts were chosen.
# usage: check_forms.sh WEFT FOLDER…
set -u
weft=$1
shift
passed=0 failed=0 skipped=0

# check MODEL OPTION…
check() {
    line=$("$weft" explain "$@" 2>&1 | grep '^forms: ')
    set -- "$*" $line # forms: N of M …
    if [ $# -gt 3 ] && [ "$3" -gt 0 ] && [ "$3" = "$5" ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: weft explain $1: ${line:-no unit was counted}"
        "$weft" explain $1 2>&1 | grep 'unpriced'
        failed=$((failed + 1))
    fi
}

for folder in "$@"; do
    [ -f "$folder/model.onnx" ] || { echo "skipped: $folder"; skipped=$((skipped + 1)); continue; }
    for level in baseline avx2 avx512; do
        for flag in --threads=2 --threads=1 --no-winograd --winograd-4; do
            check "$folder/model.onnx" --cpu "$level" "$flag"
        done
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
