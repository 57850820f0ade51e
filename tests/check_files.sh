#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files that the command writes come out whole or not at all: where there is no room for them, and where a signal ends
# the command. What was there before stays, and nothing is left beside it.
# usage: check_files.sh WEFT SOURCE
set -u
weft=$(realpath "$1")
source=$(realpath "$2")
model=$source/examples/models/ultraface-rfb-320/model.onnx
digits=$source/tests/models/mnist # weights in places that are no multiple of 4: they go beside a text
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0 skipped=0
WEFT_PRICES=
export WEFT_PRICES

check() { # check WHAT command…: the command succeeds
    what=$1
    shift
    if "$@" >log 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what: $*:"
        cat log message 2>/dev/null
        failed=$((failed + 1))
    fi
}

cat >large.weft <<'TEXT'
graph @large(%x: f32[64,1024]) {
  %y: f32[64,1024] = exp %x
  return %y
}
TEXT
# in_little_room FILE command…: with files of up to 8 KiB only, the command fails, names the file and says why; and the
# file has what it had.
in_little_room() {
    file=$1
    shift
    mkdir -p "$(dirname "$file")"
    echo before >"$file"
    # shellcheck disable=SC3045 # dash, bash and busybox have it
    (ulimit -f 16 && exec "$@") >message 2>&1
    code=$?
    check "$file: the exit code" test $code = 1
    check "$file: the message" grep -q "\($(basename "$file")\|temporary file\).*File too large" message
    check "$file is as before" sh -c "[ \"\$(cat '$file')\" = before ]"
    check "nothing beside $file" sh -c "! ls '$(dirname "$file")' | grep -v '^$(basename "$file")\$'"
}
mkdir -p outputs
in_little_room outputs/output_0.npy "$weft" run large.weft -o outputs
in_little_room text/detector.weft "$weft" opt "$model" -o text/detector.weft
in_little_room sidecar/p.weft.bin "$weft" opt "$digits/model.onnx" -o sidecar/p.weft
if "$weft" dot large.weft >/dev/null 2>&1; then
    in_little_room drawn/plan.dot "$weft" dot "$model" -o drawn/plan.dot
    if command -v dot >/dev/null; then
        in_little_room drawn.svg/plan.svg "$weft" dot "$model" --max-nodes 40 -o drawn.svg/plan.svg
    fi
else
    skipped=$((skipped + 1)) && echo 'skipped: pictures, this weft draws none'
fi
# A disk that is full, where one can be had.
mkdir -p disk
if mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
    echo before >disk/output_0.npy
    "$weft" run large.weft -o disk >message 2>&1
    check 'a full disk is an error' sh -c "[ $? = 1 ] && grep -q 'output_0.npy: No space left' message"
    check 'a full disk keeps what was there' sh -c '[ "$(cat disk/output_0.npy)" = before ]'
    check 'a full disk has nothing beside it' sh -c '[ "$(ls disk | wc -l)" = 1 ]'
    umount disk
else
    skipped=$((skipped + 1)) && echo 'skipped: a full disk, which takes root'
fi

# What is replaced keeps its rights and its links; devices and pipes are written in place.
"$weft" opt large.weft >want.weft
echo before >target.weft
chmod 640 target.weft
ln -s target.weft link.weft
"$weft" opt large.weft -o link.weft
check 'a link stays a link' test -h link.weft
check 'what it leads to is replaced' cmp want.weft target.weft
check 'its rights stay' sh -c '[ "$(stat -c %a target.weft)" = 640 ]'
check 'a device is written in place' sh -c '"$0" opt large.weft -o /dev/stdout | cmp - want.weft' "$weft"
mkfifo pipe
"$weft" opt large.weft -o pipe &
check 'a pipe is written in place' cmp pipe want.weft
wait
check 'it stays a pipe' test -p pipe
chmod 400 target.weft
if [ -w target.weft ]; then
    skipped=$((skipped + 1)) && echo 'skipped: a file that cannot be written, which root can'
else
    "$weft" opt large.weft -o target.weft >message 2>&1
    check 'a file without the right to write stays' grep -q 'target.weft: Permission denied' message
fi

# A text that is written over itself keeps the weights that it has in the file beside it.
"$weft" opt "$digits/model.onnx" -o own.weft
"$weft" opt --passes=pipeline own.weft -o own.weft
check 'a text can be written over itself' "$weft" run own.weft --check "$digits"

# Signals: a loop without end is left, nothing is written, and the signal is what ended the command.
cat >endless.weft <<'TEXT'
graph @endless(%x: f32[64,64]) {
  graph @body(%i: i64[], %a: f32[64,64]) {
    %b: f32[64,64] = sin %a
    return %b
  }
  %n: i64[] = const value=9223372036854775807
  %y: f32[64,64] = loop %n, %x body=@body
  return %y
}
TEXT
# The shell that runs this may have been told to ignore signals.
if ! env --default-signal=INT true 2>/dev/null; then
    skipped=$((skipped + 1)) && echo 'skipped: signals, this env cannot give them back'
else
    for case in 'INT 130' 'TERM 143' 'INT 130 --reference'; do
        # shellcheck disable=SC2086 # a list of words
        set -- $case
        signal=$1 want=$2
        shift 2
        env --default-signal=INT --default-signal=TERM timeout -k 30 --preserve-status --foreground -s "$signal" 3 \
            "$weft" run endless.weft -o ended "$@" >message 2>&1
        code=$?
        check "SIG$case: the exit code is $want, not $code" test $code = "$want"
        check "SIG$case: the message" grep -q 'weft: interrupted' message
        check "SIG$case: no output" sh -c '[ -z "$(ls ended)" ]'
    done
fi
# What was measured before Ctrl-C is said.
if env --default-signal=INT true 2>/dev/null; then
    cat >quick.weft <<'TEXT'
graph @quick(%x: f32[1024,1024]) {
  %y: f32[1024,1024] = sin %x
  return %y
}
TEXT
    env --default-signal=INT timeout -k 30 --preserve-status --foreground -s INT 2 \
        "$weft" bench quick.weft --seconds 60 --json >figures 2>message
    code=$?
    check "bench: the exit code is 130, not $code" test $code = 130
    check 'bench: the message' grep -q 'weft: interrupted after [0-9]* run' message
    check 'bench: the figures' grep -q '"median_ms": [0-9.]*, .*"max_abs_err": null' figures
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
