#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tour.sh WEFT SOURCE: what README's tour shows is what the command prints. Below a line "    $ build/weft …" each
# indented line has to be in its output, in this order; "…" in it stands for anything.
set -u
weft=$(realpath "$1") || exit 1
cd "$2" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export WEFT_PRICES= WEFT_CACHES=32K,1M,32M OMP_NUM_THREADS=2

awk -v folder="$folder" '
    /^    \$ build\/weft / {
        count++
        on = 1
        print substr($0, 18) > (folder "/" count ".command")
        next
    }
    /^    / && on { sub(/^    /, ""); print > (folder "/" count ".shown"); next }
    { on = 0 }' README.md

failed=0
number=1
while [ -f "$folder/$number.command" ]; do
    command=$(cat "$folder/$number.command")
    # shellcheck disable=SC2086 # the words of the command
    "$weft" $command >"$folder/out" 2>&1 || { echo "weft $command: exits with an error"; cat "$folder/out"; failed=1; }
    exec 3<"$folder/out"
    while IFS= read -r wanted; do
        pattern=$(printf '%s\n' "$wanted" | sed 's/[][\\*?]/\\&/g; s/…/*/g')
        found=no
        while IFS= read -r line <&3; do
            # shellcheck disable=SC2254 # it is a pattern
            case $line in $pattern) found=yes; break ;; esac
        done
        [ $found = yes ] && continue
        echo "README.md, weft $command: does not print, or not here: $wanted"
        cat "$folder/out"
        failed=1
        break
    done <"$folder/$number.shown"
    exec 3<&-
    number=$((number + 1))
done
[ $number -gt 4 ] || { echo "README.md: the tour has only $((number - 1)) commands"; failed=1; }
exit $failed
