#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each tests/dot/X.weft is drawn as X.dot says, to the byte, and Graphviz draws that without a complaint. Options stand
# in a line "# options:" of the text. WEFT_BLESS=1 rewrites the .dot files.
# usage: check_dot.sh WEFT FOLDER
set -u
weft=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
for source in "$2"/*.weft; do
    expected=${source%.weft}.dot
    options=$(sed -n 's/^# options: //p' "$source")
    # shellcheck disable=SC2086 # a list of words
    "$weft" dot --source $options "$source" -o "$work/got.dot" || { failed=$((failed + 1)); continue; }
    [ -z "${WEFT_BLESS:-}" ] || cp "$work/got.dot" "$expected"
    if diff -u "$expected" "$work/got.dot"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "if this is right: ./dev bless"
    fi
    if ! command -v dot >/dev/null; then
        skipped=$((skipped + 1))
    elif dot -Tsvg "$work/got.dot" -o "$work/got.svg" 2>"$work/log" && ! [ -s "$work/log" ] &&
        grep -q '</svg>' "$work/got.svg"; then
        passed=$((passed + 1))
    else
        echo "FAILED: dot complains about $expected"
        cat "$work/log"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
