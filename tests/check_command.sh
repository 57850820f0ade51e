#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command: help, versions, exit codes, messages that name the culprit, files that come out.
# usage: check_command.sh WEFT SOURCE
set -u
weft=$(realpath "$1")
cases=$(realpath "$2")/tests/conform
model=$(realpath "$2")/examples/models/ultraface-rfb-320
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0

# expect CODE PATTERN command…: the exit code, and a pattern that its output must hold ("" for any)
expect() {
    code=$1 pattern=$2
    shift 2
    "$@" >log 2>&1
    got=$?
    if [ $got != "$code" ] || { [ -n "$pattern" ] && ! grep -q -e "$pattern" log; }; then
        echo "FAILED: $*: exit code $got (expected $code), expected '$pattern' in:"
        cat log
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

cat >small.weft <<'TEXT'
weft 1
graph @small<N=1..64 hint=3>(%x: f32[N,4], %k: i64[N]) {
  %y: f32[N,4] = exp %x
  %z: f32[N] = sum %y axes=[1]
  %l: i64[N] = add %k, %k
  return %z, %l
}
TEXT
sed -e 's/= exp/= expp/; s/= sum/= summ/' small.weft >bad.weft
head -c 1000 "$model/model.onnx" >cut.onnx
printf 'not a model' >noise.onnx

expect 2 'usage: weft' "$weft"
expect 0 'usage: weft' "$weft" --help
expect 0 '^weft [0-9]' "$weft" --version
expect 2 "no subcommand 'fly'" "$weft" fly
for command in run check conform bench dot opt; do
    expect 0 "usage: weft $command" "$weft" $command --help
    expect 2 'weft' "$weft" $command --no-such-option
done
readers='run check bench dot'
if "$weft" dot small.weft 2>&1 | grep -q 'built without'; then
    readers='run check bench'
fi
for command in $readers; do
    expect 2 'something is missing' "$weft" $command
    expect 1 'nowhere.onnx' "$weft" $command nowhere.onnx
    expect 1 'bad.weft:3:' "$weft" $command bad.weft
    expect 1 'bad.weft:4:' "$weft" $command bad.weft
    expect 1 'cut.onnx' "$weft" $command cut.onnx
    expect 1 'noise.onnx' "$weft" $command noise.onnx
    expect 1 'cpu=warp' "$weft" $command small.weft --cpu=warp
done
expect 2 'wants a number' "$weft" run small.weft --threads many
expect 2 'wants a value' "$weft" run small.weft -o
expect 2 'one word too many' "$weft" run small.weft other.weft
expect 2 'exclude each other' "$weft" dot small.weft --source --time

expect 0 'can run' "$weft" check small.weft
expect 0 'f32\[3\]' "$weft" run small.weft
expect 0 'f32\[5\]' "$weft" run small.weft --size N=5
expect 1 'no such symbol' "$weft" run small.weft --size M=5
expect 1 '2 inputs, -i was given 1 times' "$weft" run small.weft -i "$model/input_0.npy"
expect 1 'missing.npy' "$weft" run small.weft -i missing.npy -i missing.npy
expect 1 'input' "$weft" run small.weft -i "$model/input_0.npy" -i "$model/input_0.npy"
expect 0 'output 1' "$weft" run small.weft -o expected
expect 1 'input_0.npy' "$weft" run small.weft --check expected

# Outputs that were written are outputs that agree; other outputs do not.
expect 0 'agrees' "$weft" run "$model/model.onnx" --check "$model" -o again
mkdir -p folder
cp "$model/input_0.npy" folder
cp again/output_0.npy folder
cp again/output_1.npy folder
expect 0 'agrees' "$weft" run "$model/model.onnx" --check folder --threads 1
expect 0 'agrees' "$weft" run "$model/model.onnx" --check folder --cpu=baseline
cp again/output_1.npy folder/output_0.npy
expect 1 'expected f32' "$weft" run "$model/model.onnx" --check folder
expect 0 'steps in all' "$weft" run "$model/model.onnx" --kernels

# Backend tests: one of each verdict, counted and named.
expect 1 '^2 passed, 1 failed, 2 skipped$' "$weft" conform "$cases"
expect 1 '^FAIL differs: output 0: element 0 is 1, expected 1.00' "$weft" conform "$cases"
expect 1 '^  Fictional -  *1$' "$weft" conform "$cases"
expect 1 '^  Identity string  *1$' "$weft" conform "$cases"
expect 0 '^1 were compiled with small inputs known' "$weft" conform "$cases" --filter 'k*'
expect 0 '^pass passes$' "$weft" conform "$cases" --filter passes --verbose --reference
expect 0 '^differs$' "$weft" conform "$cases" --list
expect 2 'something is missing' "$weft" conform
expect 1 'no cases there' "$weft" conform "$cases/passes/test_data_set_0"

expect 0 '"median_ms": [0-9.]*, "min_ms"' "$weft" bench small.weft --json --seconds 0
expect 0 '"max_abs_err": null' "$weft" bench small.weft --json --seconds 0 --no-verify
expect 0 'median of' "$weft" bench small.weft --seconds 0
if [ "$readers" = 'run check bench' ]; then
    expect 1 'built without' "$weft" dot small.weft
else
    expect 0 '^digraph' "$weft" dot small.weft
    expect 0 ' ms, ' "$weft" dot small.weft --time
    expect 1 "named 'nothing'" "$weft" dot small.weft --focus nothing
    expect 1 'folder/that/is/not/there' "$weft" dot small.weft -o folder/that/is/not/there.dot
    if command -v dot >/dev/null; then
        expect 0 '' "$weft" dot small.weft -o small.svg
        expect 0 '</svg>' cat small.svg
    fi
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
