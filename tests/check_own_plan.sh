#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Frameworks with kernels of their own, on models: check_own_plan.sh PLAN RUN REWRITE SOURCE. The programs compare their
# answers with those of weft's kernels; what is looked at here is what the plans consist of.
set -eu
mnist=$4/tests/models/mnist/model.onnx ultraface=$4/examples/models/ultraface-rfb-320/model.onnx
layer=$4/tests/own/layer.weft block=$4/tests/own/block.weft # of a transformer and of a ResNet
said() {
    printf '%s\n' "$out" | grep -qE "$1" || { echo "not said: $1"; printf '%s\n' "$out"; exit 1; }
}
runs() {
    out=$("$@") || { printf '%s\n' "$out"; exit 1; }
}
# steps KERNEL COUNT
steps() {
    n=$(printf '%s\n' "$out" | grep -c "^ *[0-9]* $1 ") || :
    [ "$n" = "$2" ] || { echo "not $2 steps of $1"; printf '%s\n' "$out"; exit 1; }
}

# All kernels its own: composites for which there are kernels stay whole; a transpose is a relayout, and so is a reshape
# that has to copy.
runs "$1" "$mnist"
steps plain.conv 2
steps plain.matmul 1
runs "$1" "$layer"
said '^steps of own kernels: 25; relayouts: 4$'
steps plain.norm 2
steps plain.softmax 1
steps plain.gelu 1
steps plain.matmul 8
runs "$1" "$block"
said '^steps of own kernels: 15; relayouts: 0$'
runs "$1" "$ultraface"
steps plain.conv 52

# Kernels on blocks, run by weft. The detector has 52 convolutions, of which those between images and heads fill blocks;
# what comes in and goes out is converted. From the first convolution of a ResNet to its mean nothing is.
runs "$2" "$ultraface"
said '^steps of own kernels: [1-9][0-9]+; of weft'
said '^converted .*: from \{0 1 2 3\} to \{0 1/16 2 3 1%16\}$'
runs "$2" "$mnist"
runs "$2" "$block"
said '^steps of own kernels: 12; of weft.s: 3; conversions in each run: 0; once: 5$'
runs "$2" "$layer"
said '^steps of own kernels: 6; of weft.s: [0-9]+; conversions in each run: 0; once: 6$'

upscaler=$4/../shared/models/super-resolution/model.onnx
if [ -e "$upscaler" ]; then
    runs "$1" "$upscaler"
    steps plain.conv 4
    runs "$2" "$upscaler"
fi

runs "$3"
said '%y: f32\[4,64\] = silu %h$'
if printf '%s\n' "$out" | grep -q sigmoid; then echo 'the sigmoid is still there'; exit 1; fi
