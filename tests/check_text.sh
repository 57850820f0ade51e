#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mechanical rules for text: an SPDX line first, no tabs, no trailing blanks, a newline at the end, at most 120 columns
# and, in C, at most 500 lines; no leftovers.
# usage: check_text.sh SOURCE
set -u
cd "$1" || exit 1
export LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -e .git ] && git ls-files >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
else
    find . -type f -not -path './build*' -not -path './out/*' | sed 's|^\./||'
fi | grep -E '(\.(c|h|inc|def|sh|py|md|txt)|meson\.build|^dev|^\.ci/run)$' | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
done >"$work/files"
grep -vE '\.(md|txt)$' "$work/files" >"$work/sources"
status=0
# complain WHAT: standard input names the places, if any
complain() {
    if grep . >"$work/places"; then
        echo "$1:"
        sed 's/^/    /' "$work/places"
        status=1
    fi
}
in_files() { xargs grep -nHP -e "$1" <"$work/files"; }
in_files '\t' >"$work/found"; complain "tabs" <"$work/found"
in_files ' +$' >"$work/found"; complain "trailing blanks" <"$work/found"
xargs grep -nHP '^.{121,}$' <"$work/sources" >"$work/found"; complain "more than 120 columns" <"$work/found"
while read -r file; do
    head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
done <"$work/sources" >"$work/found"
complain "no SPDX line among the first two" <"$work/found"
xargs grep -nHE '\b(TODO|FIXME|XXX)\b' <"$work/sources" | grep -v '^tests/check_text.sh:' >"$work/found"
complain "leftovers" <"$work/found"
while read -r file; do
    [ ! -s "$file" ] || [ -z "$(tail -c1 "$file")" ] || echo "$file"
done <"$work/files" >"$work/found"
complain "no newline at the end" <"$work/found"
grep '\.c$' "$work/files" | xargs wc -l | awk '$2 != "total" && $1 > 500 { print $2 ": " $1 }' >"$work/found"
complain "more than 500 lines: two ideas share a room" <"$work/found"
exit $status
