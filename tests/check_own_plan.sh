#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Frameworks with kernels of their own, on real models: check_own_plan.sh PLAN RUN REWRITE SOURCE. The programs compare
# their answers with those of weft's kernels; what is looked at here is what the plans consist of.
set -eu
mnist=$4/tests/models/mnist/model.onnx ultraface=$4/examples/models/ultraface-rfb-320/model.onnx
said() {
    printf '%s\n' "$out" | grep -qE "$1" || { echo "not said: $1"; printf '%s\n' "$out"; exit 1; }
}
out=$("$1" "$mnist") || { printf '%s\n' "$out"; exit 1; }
said '^ *[0-9]+ plain.conv '
said '^ *[0-9]+ plain.matmul '
[ "$(printf '%s\n' "$out" | grep -c ' plain\.conv ')" = 2 ] || { echo 'not two convolutions'; exit 1; }

# 52 convolutions, of which those between images and heads fill blocks; what comes in and goes out is converted.
out=$("$2" "$ultraface") || { printf '%s\n' "$out"; exit 1; }
said '^steps of own kernels: [1-9][0-9]+; of weft'
said '^converted .*: from \{0 1 2 3\} to \{0 1/16 2 3 1%16\}$'
out=$("$2" "$mnist") || { printf '%s\n' "$out"; exit 1; }

out=$("$3")
said '%y: f32\[4,64\] = silu %h$'
if printf '%s\n' "$out" | grep -q sigmoid; then echo 'the sigmoid is still there'; exit 1; fi
