#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A library exports exactly the functions that its public header marks WEFT_API, all of them called weft_….
# usage: check_symbols.sh LIBRARY HEADER
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u >"$work/exported"
# A declaration may go on over several lines; the name stands before the first parenthesis.
tr '\n' ' ' <"$2" | tr ';' '\n' | sed -n 's/.*WEFT_API [^(]*[ *]\(weft_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$work/declared"
status=0
[ -s "$work/declared" ] || { echo "no declarations found in $2"; status=1; }
for symbol in $(grep -v '^weft_' "$work/exported"); do
    echo "$1 exports $symbol, which lacks the prefix"
    status=1
done
for symbol in $(comm -23 "$work/exported" "$work/declared"); do
    echo "$1 exports $symbol, which $2 does not declare"
    status=1
done
for symbol in $(comm -13 "$work/exported" "$work/declared"); do
    echo "$2 declares $symbol, which $1 does not export"
    status=1
done
echo "$(wc -l <"$work/exported") symbols"
exit $status
