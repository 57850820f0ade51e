# SPDX-License-Identifier: Apache-2.0
# ./dev run builds what it needs and nothing else, and says so before it begins: with a ninja that only notes what it is
# asked for. All other tools are stand-ins too, which print nothing, and those that install packages fail: whatever dev
# takes to be missing, nothing is installed by this test.
#
# usage: check_dev.sh SOURCE
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/build/tools" "$work/build/examples"
cp "$source/dev" "$work/dev"
touch "$work/build/build.ninja"
for tool in cc c++ pkg-config dot weft weft-check detect; do
    printf '#!/bin/sh\n' >"$work/bin/$tool"
done
printf '#!/bin/sh\necho 1.0\n' >"$work/bin/meson"
for tool in apt-get sudo; do
    printf '#!/bin/sh\necho "%s $*" >>"$NOTES.installs"\nexit 1\n' $tool >"$work/bin/$tool"
done
cat >"$work/bin/ninja" <<'TEXT'
#!/bin/sh
[ "$1" != --version ] || exit 0
echo "$*" >>"$NOTES"
echo "ninja: Entering directory"
[ "$3" != -n ] || [ -n "${UP_TO_DATE:-}" ] || printf '[1/2] one\n[2/2] two\n'
TEXT
chmod +x "$work/bin"/*
cp "$work/bin/weft" "$work/bin/weft-check" "$work/build/tools"
cp "$work/bin/detect" "$work/build/examples"

passed=0 failed=0
expect() { # what is expected, what came
    if [ "$1" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf "FAILED: expected '%s', got '%s'\n" "$1" "$2"
    fi
}

export NOTES="$work/notes" PATH="$work/bin:$PATH"
unset CC
sh "$work/dev" run >"$work/said"
expect '-C build tools/weft examples/detect' "$(tail -n 1 "$NOTES")"
expect 'building into build/: tools/weft examples/detect (steps: 2)' "$(head -n 1 "$work/said")"
UP_TO_DATE=1 sh "$work/dev" run >"$work/said"
expect '== detect' "$(head -n 1 "$work/said" | cut -c1-9)"
sh "$work/dev" build >"$work/said"
expect '-C build' "$(tail -n 1 "$NOTES" | sed 's/ *$//')"
expect 'building into build/: everything (steps: 2)' "$(cat "$work/said")"
expect '' "$(cat "$NOTES.installs" 2>/dev/null)"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
