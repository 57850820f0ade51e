#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tour.sh WEFT SOURCE: what README's tour and the examples of docs/explain.md show is what the command prints.
# Below a line "    $ build/weft …" each indented line has to be in its output, in this order; "…" in it stands for
# anything, and in docs/explain.md numbers that depend on prices, sizes of caches or the clock stand for others.
set -u
weft=$(realpath "$1") || exit 1
cd "$2" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export WEFT_PRICES= WEFT_CACHES=32K,1M,32M OMP_NUM_THREADS=2
failed=0

# collect DOCUMENT: number.command and number.shown, from 1 on
collect() {
    rm -f "$folder"/*
    awk -v folder="$folder" '
        /^    \$ build\/weft / {
            count++
            on = 1
            print substr($0, 18) > (folder "/" count ".command")
            next
        }
        /^    / && on { sub(/^    /, ""); print > (folder "/" count ".shown"); next }
        { on = 0 }' "$1"
}

# A decimal, whole numbers of some units, and places in memory: "…". Columns are as wide as their numbers.
any_numbers() {
    sed -E 's/ +[0-9]+[.][0-9]+/ …/g; s/[0-9]+[.][0-9]+/…/g; s/[0-9]+ (us|%|kB|units|runs|of [0-9]+ within)/… \1/g
        s/[0-9]+ within [0-9]+/… within …/; s/(parts=|(arena|const|out[0-9]+)[+])[0-9]+/\1…/g; s/%_[0-9]+/%_…/g'
}

# check DOCUMENT LEAST FILTER: at least so many commands; FILTER: of what is shown
check() {
    collect "$1"
    number=1
    while [ -f "$folder/$number.command" ]; do
        command=$(cat "$folder/$number.command")
        # shellcheck disable=SC2086 # the words of the command
        if ! "$weft" $command >"$folder/out" 2>&1; then
            echo "weft $command: exits with an error"
            failed=1
        fi
        $3 <"$folder/$number.shown" >"$folder/wanted"
        exec 3<"$folder/out"
        while IFS= read -r wanted; do
            pattern=$(printf '%s\n' "$wanted" | sed 's/[][\\*?]/\\&/g; s/…/*/g')
            found=no
            while IFS= read -r line <&3; do
                # shellcheck disable=SC2254 # it is a pattern
                case $line in $pattern) found=yes; break ;; esac
            done
            [ $found = yes ] && continue
            echo "$1, weft $command: does not print, or not here: $wanted"
            cat "$folder/out"
            failed=1
            break
        done <"$folder/wanted"
        exec 3<&-
        number=$((number + 1))
    done
    [ $number -gt "$2" ] || { echo "$1: there are only $((number - 1)) commands"; failed=1; }
}

check README.md 4 cat
check docs/explain.md 3 any_numbers
exit $failed
