#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every first and every kept input of a fuzz target, and some steps of mutation from each.
# usage: check_replay.sh REPLAY TARGET
set -u
here=$(cd "$(dirname "$0")" && pwd)
replay=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sh "$here/seeds.sh" "$2" "$work/seeds" || exit 1
cd "$work/seeds" || exit 1
find . -type f | LC_ALL=C sort | xargs "$replay" --steps 6 >"$work/out" 2>"$work/log"
status=$?
cat "$work/out"
[ $status = 0 ] || tail -40 "$work/log"
exit $status
