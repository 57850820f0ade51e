#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mechanical rules for text: SPDX line first, no tabs, no trailing blanks, a newline at the end, at most 120 columns in sources,
# at most 500 lines in a C file, no leftovers.
# usage: check_text.sh SOURCE
set -u
cd "$1" || exit 1
export LC_ALL=C.UTF-8
if [ -e .git ] && git ls-files >/dev/null 2>&1; then
    files=$(git ls-files --cached --others --exclude-standard)
else
    files=$(find . -type f -not -path './build*' -not -path './out/*' | sed 's|^\./||')
fi
status=0
complain() { # file, what
    echo "$1: $2"
    status=1
}
for file in $files; do
    [ -f "$file" ] || continue
    case $file in
    *.c | *.h | *.inc | *.def | *.sh | *.py | *meson.build | dev | .ci/run) source=yes ;;
    *.md | *.txt | .clang-format | .editorconfig | .gitignore) source=no ;;
    *) continue ;;
    esac
    if grep -nP '\t' "$file"; then complain "$file" "tabs"; fi
    if grep -nP '[ \t]+$' "$file"; then complain "$file" "trailing blanks"; fi
    [ ! -s "$file" ] || [ -z "$(tail -c1 "$file")" ] || complain "$file" "no newline at the end"
    [ $source = yes ] || continue
    head -2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || complain "$file" "no SPDX line"
    if grep -nP '^.{121,}$' "$file"; then complain "$file" "more than 120 columns"; fi
    case $file in
    tests/check_text.sh) ;;
    *) if grep -nE '\b(TODO|FIXME|XXX)\b' "$file"; then complain "$file" "leftovers"; fi ;;
    esac
    case $file in
    *.c) [ "$(wc -l <"$file")" -le 500 ] || complain "$file" "more than 500 lines: two ideas share a room" ;;
    esac
done
exit $status
