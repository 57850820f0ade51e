#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory of each model folder (model.onnx, input_N.npy): at most its weights, its intermediates and 64 MiB. The same of
# a made-up one with 100 MB of weights at an odd place of their file, which two ops read: a gather in place, a product
# in an order of its own; and of one whose weights a relayout turns before they are packed. A copy too much, or pages of
# the file that nobody gives back, break the bound.
# usage: check_memory.sh WEFT FOLDER…
set -u
weft=$1
shift
passed=0 failed=0 skipped=0

number() { printf '%s\n' "$line" | sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p"; }

# The check itself: 64 MiB are allowed, a kilobyte more is not.
over() { awk -v peak="$1" -v weights="$2" -v arena="$3" 'BEGIN { exit !(peak > weights + arena + 64 * 1.048576) }'; }
if over 77.1 5 5 || ! over 77.2 5 5; then
    echo "FAILED: the check does not tell what is too much"
    exit 1
fi

# judge MODEL OPTION…
judge() {
    line=$("$weft" bench "$@" --seconds 0.1 --json)
    peak=$(number peak_rss_mb) weights=$(number weights_mb) arena=$(number arena_mb)
    if [ -z "$peak" ] || [ -z "$weights" ] || [ -z "$arena" ]; then
        echo "FAILED: weft bench $1 says: $line"
        failed=$((failed + 1))
    elif over "$peak" "$weights" "$arena"; then
        echo "FAILED: $1: $peak MB, of which $weights are weights and $arena intermediates"
        failed=$((failed + 1))
    else
        echo "$1: $peak MB, of which $weights are weights and $arena intermediates"
        passed=$((passed + 1))
    fi
}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
printf "anything that is not uniform" >"$made/weights.bin"
truncate -s 102400001 "$made/weights.bin"
cat >"$made/tied.weft" <<'TEXT'
graph @tied(%token: i64[4]) {
  %weights: f32[25000,1024] = const file="weights.bin" offset=1
  %x: f32[4,1024] = gather %weights, %token axis=0
  %h: f32[4,1024] = tanh %x
  %y: f32[4,25000] = matmul %h, %weights trans_b=1
  return %y
}
TEXT
judge "$made/tied.weft" --no-verify
cat >"$made/turned.weft" <<'TEXT'
graph @turned(%x: f32[4,1024]) {
  %weights: f32[25000,1024] = const file="weights.bin" offset=1
  %turned: f32[25000,1024]{1 0} = relayout %weights
  %y: f32[4,25000] = matmul %x, %turned trans_b=1
  return %y
}
TEXT
judge "$made/turned.weft" --no-verify

for folder in "$@"; do
    [ -f "$folder/model.onnx" ] || continue
    if "$weft" check "$folder/model.onnx" >/dev/null 2>&1; then
        judge "$folder/model.onnx" --check "$folder"
    else
        echo "skipped: $folder (see weft check)"
        skipped=$((skipped + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
