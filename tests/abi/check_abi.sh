#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that were built against older headers run with this library: README.md beside this file.
# usage: check_abi.sh SOURCE LIBRARY "CC"
set -u
source=$1 library=$2 cc=$3
here=$source/tests/abi
folder=$(dirname "$library")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
# outcome WHAT STATUS
outcome() {
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1"
        failed=$((failed + 1))
    fi
}

# longer OLD NEW: the lines that differ, but for structs that may grow and have
longer() {
    diff "$1" "$2" | sed -n 's/^< //p' | while IFS= read -r line; do
        case $line in
        'at least '*)
            size=${line#at least } name=${line#*: }
            now=$(sed -n "s/^at least \([0-9]*\): $name\$/\1/p" "$2")
            [ "${now:-0}" -ge "${size%%:*}" ] || echo "$line"
            ;;
        *) echo "$line" ;;
        esac
    done
}

nm -D --defined-only "$library" | awk '{ print $NF }' >"$work/symbols"
for old in "$here"/[0-9]*; do
    version=${old##*/}
    # shellcheck disable=SC2086 # CC is a list of words
    $cc -std=c17 -I"$old" "$here/layout.c" -o "$work/old" && $cc -std=c17 -I"$source/include" -I"$old" \
        "$here/layout.c" -o "$work/new" && "$work/old" >"$work/old.txt" && "$work/new" >"$work/new.txt"
    outcome "layout.c builds against the headers of $version and of today" $?
    longer "$work/old.txt" "$work/new.txt" >"$work/changed"
    sed "s/^/  was /" "$work/changed"
    ! grep -q . "$work/changed"
    outcome "members and constants of $version are where they were" $?

    # shellcheck disable=SC2086
    $cc -std=c17 -Wall -Wextra -Werror -I"$old" "$here/program.c" -o "$work/program" "$library" \
        "-Wl,-rpath,$folder" && "$work/program"
    outcome "a program of $version runs" $?

    # shellcheck disable=SC2086
    $cc -std=c17 -Wall -Wextra -Werror -I"$source/include" "$here/program.c" -o "$work/program" "$library" \
        "-Wl,-rpath,$folder" && "$work/program"
    outcome "the sources of that program build against the headers of today" $?

    sed -n "s/^WEFT_API [^(]*[ *]\(weft_[a-z0-9_]*\)(.*/\1/p" "$old/weft/weft.h" | while read -r name; do
        has=$(sed -n "s/^$name@@WEFT_//p" "$work/symbols")
        [ -n "$has" ] && [ "$(printf '%s\n' "$has" "$version" | sort -V | tail -n 1)" = "$version" ] ||
            echo "  $name is of version ${has:-none}"
    done >"$work/unversioned"
    cat "$work/unversioned"
    ! grep -q . "$work/unversioned"
    outcome "functions of $version are of that version or an earlier one" $?
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
