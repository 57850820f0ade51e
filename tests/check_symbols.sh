#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A library exports exactly the functions that its public headers mark WEFT_API, all of them called weft_….
# usage: check_symbols.sh LIBRARY HEADER…
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$1
shift
# Absolute symbols are the names of versions.
nm -D --defined-only "$library" | awk '$(NF - 1) != "A" { sub(/@.*/, "", $NF); print $NF }' | sort -u >"$work/exported"
# A declaration may go on over several lines; the name stands before the first parenthesis.
cat "$@" | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*WEFT_API [^(]*[ *]\(weft_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$work/declared"
status=0
[ -s "$work/declared" ] || { echo "no declarations found in $*"; status=1; }
for symbol in $(grep -v '^weft_' "$work/exported"); do
    echo "$library exports $symbol, which lacks the prefix"
    status=1
done
for symbol in $(comm -23 "$work/exported" "$work/declared"); do
    echo "$library exports $symbol, which no header declares"
    status=1
done
for symbol in $(comm -13 "$work/exported" "$work/declared"); do
    echo "$library does not export $symbol, which a header declares"
    status=1
done
echo "$(wc -l <"$work/exported") symbols"
exit $status
