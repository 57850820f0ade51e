#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Assembles the first inputs of a fuzz target from the tests that are there: what they know need not be found again.
# Texts are cut into their graphs, since a target reads the first one. `kept/<target>` holds what was once found.
# usage: seeds.sh TARGET FOLDER
set -eu
target=$1
mkdir -p "$2"
to=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."

# graphs PREFIX, text on standard input: a file for each top-level graph
graphs() {
    awk -v prefix="$to/$1" '
        /^graph / { file = sprintf("%s-%03d.weft", prefix, ++count); inside = 1 }
        inside    { print > file }
        /^}/      { inside = 0; close(file) }'
}

case $target in
text)
    for file in golden/*/*.weft invalid/*.weft dot/*.weft; do
        grep -v '^#' "$file" | graphs "$(echo "$file" | tr / -)"
    done
    sed -n '/^```weft/,/^```$/p' ../ir/FORMAT.md | grep -v '^```' | graphs format
    ;;
dims)
    grep -h '"' unit/test_dims.c | grep -o '"[^"%\\]*"' | tr -d '"' | awk -v to="$to" '
        NR % 2 { first = $0; next } { file = sprintf("%s/%03d", to, ++n); print first "\n" $0 > file; close(file) }'
    ;;
form)
    awk -v to="$to" '
        /^kernel @/ { file = sprintf("%s/%03d", to, ++count); inside = 1 }
        inside      { print > file }
        /^}/        { inside = 0; close(file) }' ../codegen/README.md
    ;;
onnx)
    find cases conform models -name '*.onnx' -size -17k | while read -r file; do
        cp "$file" "$to/$(echo "$file" | tr / -)"
    done
    ;;
npy)
    # array NAME CODE ORDER SHAPE BYTES: a header of 118 bytes behind the first ten, as numpy pads it, and zeros
    array() {
        {
            printf '\223NUMPY\001\000\166\000'
            printf "%-117s\n" "{'descr': '$2', 'fortran_order': $3, 'shape': ($4), }"
            head -c "$5" /dev/zero
        } >"$to/$1"
    }
    array scalar '<f4' False '' 4
    array matrix '<f8' True '2, 3' 48
    array halves '<f2' False '5,' 10
    array bytes '|u1' False '2, 2, 2' 8
    array bools '|b1' True '3,' 3
    array longs '<i8' False '0, 4' 0
    array deep '<i4' False '1, 1, 1, 1, 1, 1, 1, 1' 4
    cp models/mnist/output_0.npy "$to"
    ;;
*)
    echo "seeds.sh: no target '$target'" >&2
    exit 2
    ;;
esac
if [ -d "fuzz/kept/$target" ]; then
    cp "fuzz/kept/$target"/* "$to"
fi
