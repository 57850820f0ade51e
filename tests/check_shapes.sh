#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Both readers of shape files know the same cases: that of weft-check, and that of the scripts which time peers.
# usage: check_shapes.sh WEFT-CHECK SOURCE
set -u
check=$1 source=$2
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$check" --bench --list | awk '{print $3}' | sort >"$work/ours" || exit 1
python3 -B "$source/bench/shape_files.py" "$source"/bench/shapes/*.shapes | sort >"$work/theirs" || exit 1
[ -s "$work/ours" ] || { echo "no cases"; exit 1; }
diff "$work/ours" "$work/theirs"
