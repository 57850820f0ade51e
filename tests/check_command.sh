#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command: help, versions, exit codes, messages that name the culprit, files that come out.
# usage: check_command.sh WEFT SOURCE WEFT-CHECK
set -u
weft=$(realpath "$1")
source=$(realpath "$2")
harness=$(realpath "$3")
model=$source/examples/models/ultraface-rfb-320
cases=$source/tests/conform
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0

# expect CODE PATTERN command…: the exit code, and a pattern that its output must hold ("" for any)
expect() {
    code=$1 pattern=$2
    shift 2
    "$@" >log 2>&1
    got=$?
    if [ $got != "$code" ] || { [ -n "$pattern" ] && ! grep -q -e "$pattern" log; }; then
        echo "FAILED: $*: exit code $got (expected $code), expected '$pattern' in:"
        cat log
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

cat >small.weft <<'TEXT'
weft 1
graph @small<N=1..64 hint=3>(%x: f32[N,4], %k: i64[N]) {
  %y: f32[N,4] = exp %x
  %z: f32[N] = sum %y axes=[1]
  %l: i64[N] = add %k, %k
  return %z, %l
}
TEXT
sed -e 's/= exp/= expp/; s/= sum/= summ/' small.weft >bad.weft
head -c 1000 "$model/model.onnx" >cut.onnx
printf 'not a model' >noise.onnx
sed -e 's/^weft 1//; s/@small/@second/' small.weft | cat small.weft - >two.weft
mkfifo pipe.weft
cat >named.weft <<'TEXT'
graph @named(%input.x: f32[4]) {
  %0: f32[4] = exp %input.x
  return %0
}
TEXT
mkdir folder.weft

WEFT_PRICES='' # the shipped ones, whatever was calibrated here
export WEFT_PRICES

expect 2 'usage: weft' "$weft"
expect 0 'usage: weft' "$weft" --help
expect 0 '^weft [0-9]' "$weft" --version
expect 2 "no subcommand 'fly'" "$weft" fly
expect 2 "no subcommand 'ben' (did you mean bench?)" "$weft" ben
expect 0 'usage: weft SUBCOMMAND' "$weft" help
expect 0 '^usage: weft run' "$weft" help run
expect 2 "no subcommand 'runn' (did you mean run?)" "$weft" help runn
expect 2 'one word too many' "$weft" help run bench
expect 2 "no option '--thread' (did you mean --threads?)" "$weft" run small.weft --thread 2
expect 2 "no option '--chekc=x' (did you mean --check?)" "$weft" run small.weft --chekc=x
expect 0 'warning: --threads 999: there are [0-9]*;' "$weft" run small.weft --threads 999
expect 0 '1 thread$' "$weft" run small.weft --threads 1
expect 2 "no pass is called 'constant_fold' (did you mean fold_const?)" "$weft" opt --passes=constant_fold small.weft
expect 2 "not 'stat' (did you mean stats?)" "$weft" opt --print=stat small.weft
expect 2 "no CPU level 'avx-512' (from --cpu) (did you mean avx512?)" "$weft" run small.weft --cpu avx-512
for command in run check conform bench calibrate dot explain diff bisect reduce report opt; do
    expect 0 "usage: weft $command" "$weft" $command --help
    expect 2 'weft' "$weft" $command --no-such-option
done
readers='run check bench dot'
if "$weft" dot small.weft 2>&1 | grep -q 'built without'; then
    readers='run check bench'
fi
if [ "$readers" != 'run check bench' ]; then # a relayout that is gone is not counted
    cat >stored.weft <<'TEXT'
weft 1
graph @p(%x: f32[1,64,14,14]) {
  %w: f32[64,64,3,3] = const random=1
  %c: f32[1,64,14,14] = conv %x, %w pad=[1 1 1 1]
  %y: f32[1,64,14,14] = max_pool %c kernel=[3 3] pad=[1 1 1 1]
  return %y
}
TEXT
    draw='opt --passes=propagate_memory_format --print dot stored.weft'
    expect 0 'relayouts* inserted' "$weft" $draw
    expect 1 '' sh -c '"$0" "$@" --strip | grep "inserted"' "$weft" $draw
fi
for command in $readers explain diff bisect reduce report; do
    expect 2 "^weft $command: a model (an .onnx file or weft text) is missing: weft $command .*; see weft $command -" \
        "$weft" $command
done
expect 2 '^weft opt: a model .*, or - for standard input, is missing: weft opt .*; see weft opt --help$' "$weft" opt
expect 2 '^weft opt: a test file, or a folder of them, is missing: ' "$weft" opt --test
expect 2 '^weft opt: it wants one file' "$weft" opt one.weft two.weft
for command in $readers; do
    expect 1 'nowhere.onnx' "$weft" $command nowhere.onnx
    expect 1 'bad.weft:3:' "$weft" $command bad.weft
    expect 1 'bad.weft:4:' "$weft" $command bad.weft
    expect 1 'cut.onnx' "$weft" $command cut.onnx
    expect 1 'noise.onnx' "$weft" $command noise.onnx
    expect 2 "no CPU level 'warp' (from --cpu)" "$weft" $command small.weft --cpu=warp
    expect 2 "no CPU level 'foo' (from the environment's WEFT_CPU)" env WEFT_CPU=foo "$weft" $command small.weft
    expect 1 'null: a device' "$weft" $command /dev/null
    expect 1 'pipe.weft: a pipe' timeout 10 "$weft" $command pipe.weft
    expect 1 'folder.weft: a folder' "$weft" $command folder.weft
    expect 0 '' "$weft" $command two.weft --graph 1
    expect 1 'has only 2 graphs' "$weft" $command two.weft --graph 2
    expect 1 'an ONNX file has one graph' "$weft" $command "$model/model.onnx" --graph 1
done
for threads in many 0 -1 1.5; do
    expect 2 'wants a whole number from 1' "$weft" run small.weft --threads=$threads
done
expect 2 'wants a number from 0' "$weft" bench small.weft --seconds soon
expect 2 'wants a value' "$weft" run small.weft -o
expect 2 'one word too many' "$weft" run small.weft other.weft
expect 2 'exclude each other' "$weft" dot small.weft --source --time

expect 0 'can run' "$weft" check small.weft
expect 0 'f32\[3\]' "$weft" run small.weft
expect 0 'f32\[5\]' "$weft" run small.weft --size N=5
expect 0 'output 0  0 f32' "$weft" run named.weft
expect 1 'no such symbol; it has N (1 to 64)' "$weft" run small.weft --size M=5
expect 1 'no such symbol (did you mean N?); it has' "$weft" run small.weft --size n=5
expect 1 'out of range, N is from 1 to 64' "$weft" run small.weft --size N=65
expect 2 'whole number' "$weft" run small.weft --size N=five
expect 2 'whole number' "$weft" run small.weft --size 5
expect 1 '2 inputs, -i was given 1 time$' "$weft" run small.weft -i "$model/input_0.npy"
expect 1 'pipe.weft: not a regular file' timeout 10 "$weft" run small.weft -i pipe.weft -i pipe.weft
expect 1 'missing.npy' "$weft" run small.weft -i missing.npy -i missing.npy
face=$model/input_0.npy
expect 1 'input_0.npy: f32\[1,3,240,320\] for input 0, x f32\[N,4\]' "$weft" run small.weft -i "$face" -i "$face"
cat >picture.weft <<'TEXT'
graph @picture(%x: f32[1,3,24,32]) {
  %y: f32[1,3,24,32] = relu %x
  return %y
}
TEXT
expect 1 'parameter %x: axis 2 has extent 24, but 240 is given' "$weft" run picture.weft -i "$face"
expect 0 'output 1' "$weft" run small.weft -o expected
expect 0 'output 1' "$weft" run small.weft -o a/new/folder
expect 0 '' test -s a/new/folder/output_1.npy
expect 1 'small.weft/below' "$weft" run small.weft -o small.weft/below
expect 1 'input_0.npy' "$weft" run small.weft --check expected
expect 2 'keep-inputs goes with -o' "$weft" run small.weft --keep-inputs
expect 0 'output 1' "$weft" run small.weft -o expected --keep-inputs
expect 0 'agrees' "$weft" run small.weft --check expected

# Outputs that were written are outputs that agree; other outputs do not.
expect 0 'agrees' "$weft" run "$model/model.onnx" --check "$model" -o again
mkdir -p folder
cp "$model/input_0.npy" folder
cp again/output_0.npy folder
cp again/output_1.npy folder
expect 0 'agrees' "$weft" run "$model/model.onnx" --check folder --threads 1
expect 0 'agrees' "$weft" run "$model/model.onnx" --check folder --cpu=baseline
cp again/output_1.npy folder/output_0.npy
expect 1 'expected f32' "$weft" run "$model/model.onnx" --check folder

# Arrays that are none, and nothing where something should be.
: >empty.npy
printf '\223NUMPY\001\000\166\000{' >cut.npy
head -c 100 small.weft >junk.npy
mkdir -p folder.npy
expect 1 'empty.npy: not a .npy file' "$weft" run small.weft -i empty.npy -i empty.npy
expect 1 'cut.npy: the file ends inside its header' "$weft" run small.weft -i cut.npy -i cut.npy
expect 1 'junk.npy: not a .npy file' "$weft" run small.weft -i junk.npy -i junk.npy
expect 1 'folder.npy: not a regular file' "$weft" run small.weft -i folder.npy -i folder.npy
: >empty.weft
: >empty.onnx
expect 1 'there is no graph in the text' "$weft" run empty.weft
expect 1 'not an ONNX model: the file is empty' "$weft" run empty.onnx
expect 1 'Is a directory' "$weft" opt small.weft -o folder.npy

# What cannot be printed is an error, and a closed stream is no place for it, least of all the next file that is opened.
for command in 'run small.weft' 'check small.weft' 'bench small.weft --seconds 0' 'opt small.weft' 'opt --list-ops' \
    "conform $cases --list" --help --version; do
    if [ -w /dev/full ]; then
        # shellcheck disable=SC2086 # a list of words
        expect 1 'standard output: No space left' sh -c "'$weft' $command 3>&1 >/dev/full 2>&3"
    fi
    expect 1 'standard output: Bad file descriptor' sh -c "'$weft' $command 2>&1 >&-"
done
"$weft" run small.weft -o open >log
"$weft" run small.weft -o closed >&- 2>log
expect 0 '' cmp open/output_0.npy closed/output_0.npy
if [ -w /dev/full ]; then
    expect 1 '/dev/full: No space left' "$weft" opt small.weft -o /dev/full
fi

# Text of a model: weights stay in its file or go beside the text, and it computes the same.
for from in "$model" "$source/tests/models/mnist"; do
    mkdir -p text
    expect 0 '' "$weft" opt "$from/model.onnx" -o text/m.weft
    expect 1 '' grep -q 'blob=' text/m.weft
    expect 0 'agrees' "$weft" run text/m.weft --check "$from"
    expect 0 '' "$weft" opt "$from/model.onnx" --passes=pipeline -o text/p.weft
    expect 0 'agrees' "$weft" run text/p.weft --check "$from"
done
expect 0 'file="m.weft.bin"\|file=".*/m.weft.bin"' cat text/m.weft
expect 0 'fold_const.evaluate: done' "$weft" opt --passes=pipeline --print=remarks "$from/model.onnx"
expect 0 'fold_const.evaluate: done' "$weft" opt --print=remarks "$from/model.onnx"
expect 2 "no CPU level 'foo' (from --target)" "$weft" opt small.weft --target=foo
expect 2 "no CPU level 'foo' (from --cpu)" "$weft" opt small.weft --cpu=foo
expect 2 '--cpu and --target are the same' "$weft" opt small.weft --cpu=avx2 --target=avx2
expect 0 '--cpu LEVEL .*avx2' "$weft" opt --help
expect 0 '= add .* weft_strip_add_i64__avx2' "$weft" opt small.weft --print=plan --cpu=avx2
expect 0 '' sh -c '[ "$("$1" opt small.weft --print=plan --cpu=baseline)" = \
    "$("$1" opt small.weft --print=plan --target=baseline)" ]' sh "$weft"
expect 0 '^com.microsoft.QuickGelu 1 1 1$' "$weft" opt --list-onnx
expect 0 'file="F" offset=N' "$weft" opt --list-ops
expect 0 "WEFT_SKIP: nothing is called 'csee' (did you mean cse?)" env WEFT_SKIP=csee,cse "$weft" check small.weft
expect 0 "WEFT_DEBUG: nothing is called 'vailidate'" env WEFT_DEBUG=vailidate "$weft" check small.weft
expect 0 "WEFT_PRINT: nothing is called 'nopass'" env WEFT_PRINT=nopass "$weft" check small.weft
cat >wrong.weft <<'TEXT'
graph @wrong(%x: f32[2]) {
  %y: f32[2] = expp %x # error: no op is called
  return %y
}
TEXT
expect 0 'not blessed' "$weft" opt --test --bless wrong.weft
sed 's/ # error.*//' wrong.weft >unmarked.weft
expect 0 '^1$' sh -c '"$1" opt --test unmarked.weft | grep -c "no op is called"' sh "$weft"

# A folder that is both compared with and written to would agree with itself.
expect 0 '' cp again/output_0.npy before.npy
expect 2 'name one folder' "$weft" run "$model/model.onnx" --check again -o ./again
expect 0 '' cmp again/output_0.npy before.npy

# Layouts of parameters: the same numbers whatever the layout of the input and the result, from random arrays and files.
for layout in '' '{1 0}' '{0 1 | 16 1}'; do
    cat >stored.weft <<TEXT
graph @stored<N=1..64 hint=3>(%x: f32[N,4]$layout) {
  %y: f32[N,4] = exp %x
  return %y
}
TEXT
    rm -rf stored
    expect 0 'output 0  y f32\[5,4\]' "$weft" run stored.weft --size N=5 -o stored
    [ -d rowmajor ] || cp -r stored rowmajor
    expect 0 '' cmp rowmajor/output_0.npy stored/output_0.npy
    expect 0 '' "$weft" run stored.weft -i rowmajor/output_0.npy -o stored
    [ -d twice ] || cp -r stored twice
    expect 0 '' cmp twice/output_0.npy stored/output_0.npy
    expect 0 'agrees' "$weft" bench stored.weft --seconds 0
done
expect 1 'disagrees with the inputs, which have N=5' "$weft" run stored.weft -i rowmajor/output_0.npy --size N=4
expect 0 '' "$weft" run stored.weft -i rowmajor/output_0.npy --size N=5

# Files have no bf16: results of it are written as f32, and compared with what was written.
cat >halves.weft <<'TEXT'
graph @halves(%x: bf16[5,7]) {
  %y: bf16[5,7] = exp %x
  %z: f32[5,7] = cast %y
  %w: f16[5,7] = cast %y
  return %y, %z, %w
}
TEXT
expect 0 '' "$weft" run halves.weft -o halves --keep-inputs
expect 0 'agrees: max abs error 0, max rel error 0, bound 0.0' "$weft" run halves.weft --check halves
expect 0 'agrees' "$weft" bench halves.weft --check halves --seconds 0
cp halves/output_0.npy halves/output_1.npy
expect 0 'agrees' "$weft" run halves.weft --check halves
cp halves/input_0.npy halves/output_0.npy
expect 1 'WRONG: max abs error' "$weft" run halves.weft --check halves
cp halves/output_2.npy halves/output_0.npy
expect 1 'output 0: got bf16' "$weft" run halves.weft --check halves

# A mutable parameter begins anew before anything is compared.
cat >state.weft <<'TEXT'
graph @state(%s: mut f32[3], %x: f32[3]) {
  %t: f32[3] = add %s, %x
  return %t, mut %s = %t
}
TEXT
expect 0 'agrees' "$weft" bench state.weft --seconds 0
expect 0 'best whole run' "$weft" run state.weft --kernels

# What has no fast kernel is listed step by step, in bodies too, and counted.
cat >plain.weft <<'TEXT'
graph @plain(%x: f32[64,64], %l: i64[64]) {
  graph @turn(%i: i64[], %v: f32[64,64], %m: i64[64]) {
    %again: f32[64,64] = reverse_sequence %v, %m axis=1 batch_axis=0
    return %again
  }
  %e: f32[64,64] = exp %x
  %t: f32[64,64] = reverse_sequence %e, %l axis=0 batch_axis=1
  %n: i64[] = const value=3
  %p: f32[64,64] = loop %n, %t, %l body=@turn carried=1
  return %p
}
TEXT
expect 0 '^plain     2 steps without a fast kernel' "$weft" run plain.weft --kernels
expect 0 'reverse_sequence__ref  %t: f32\[64,64\] = reverse_sequence of f32\[64,64\]' "$weft" run plain.weft --kernels
expect 0 'weft_plain_reverse_sequence__ref  %again: in a body$' "$weft" run plain.weft --kernels
expect 0 '"fallback_pct": 0.0, "plain_pct": 0.0' "$weft" bench stored.weft --seconds 0 --json
expect 0 '"fallback_pct": 0.0, "plain_pct": [1-9]' "$weft" bench stored.weft --cpu baseline --seconds 0 --json
expect 0 'weft_reference  %y: f32\[N,4\] = exp of f32\[N,4\]' "$weft" run stored.weft --reference --kernels

cat >nan.weft <<'TEXT'
graph @nan(%x: f32[1000]) {
  %y: f32[1000] = log %x
  return %y
}
TEXT
expect 0 'of 1000 are NaN' "$weft" run nan.weft
expect 0 'weft_reference (log)' "$weft" run nan.weft --reference --kernels
expect 0 "sum of all steps"  "$weft" run "$model/model.onnx" --kernels

# Backend tests: one of each verdict, counted and named.
expect 1 '^2 passed, 1 failed, 2 skipped$' "$weft" conform "$cases"
expect 1 '^FAIL differs: output 0: element 0 is 1, expected 1.00' "$weft" conform "$cases"
expect 1 '^  Fictional -  *1$' "$weft" conform "$cases"
expect 1 '^  Identity string  *1$' "$weft" conform "$cases"
expect 1 'fix it while loading: --fix s=' "$weft" check "$cases/known/model.onnx"
expect 1 'not the name of an input' "$weft" check --fix s "$cases/known/model.onnx"
expect 1 'nowhere.npy' "$weft" check --fix s=nowhere.npy "$cases/known/model.onnx"
expect 1 'has the file been cut short?$' "$weft" check cut.onnx
expect 1 'nowhere.npy' "$weft" opt --fix s=nowhere.npy "$cases/known/model.onnx"
expect 1 'no such input to fix; it has input$' "$weft" check --fix s="$model/input_0.npy" "$model/model.onnx"
printf 'graph @half() {\n  %%y: f16[1,3,240,320] = const value=0\n  return %%y\n}\n' >half.weft
expect 0 '' "$weft" run half.weft -o half
expect 1 'value is f16, but the input is f32$' "$weft" explain --fix input=half/output_0.npy "$model/model.onnx"
expect 0 'nodes read' "$weft" explain --fix input="$model/input_0.npy" "$model/model.onnx"
expect 1 'cannot be fixed' "$weft" check --fix x="$model/input_0.npy" small.weft
expect 0 '^1 were compiled with small inputs known' "$weft" conform "$cases" --filter 'k*'
expect 0 '^pass passes$' "$weft" conform "$cases" --filter passes --verbose --reference
expect 0 '^differs$' "$weft" conform "$cases" --list
expect 2 '^weft conform: a folder of tests is missing: weft conform DIR' "$weft" conform
expect 1 'no cases there' "$weft" conform "$cases/passes/test_data_set_0"

expect 0 '"p99_ms": [0-9.]*, "spread_pct": [0-9.]*, "noisy": [a-z]*, "runs": [1-9]' \
    "$weft" bench small.weft --json --seconds 0
# Runs without groups are guarded as those with them are.
expect 0 '"unfused_ms": [0-9.]*, "unfused_min_ms": [0-9.]*, "unfused_spread_pct": [0-9.]*, "unfused_noisy": [tf]' \
    "$weft" bench small.weft --json --seconds 0
expect 0 '"unfused_ms": null, "unfused_min_ms": null, "unfused_spread_pct": null, "unfused_noisy": null' \
    "$weft" bench named.weft --json --seconds 0
expect 0 'without groups [0-9.]* ms median of [0-9]* runs, [0-9.]* ms at best' "$weft" bench small.weft --seconds 0
cat >noise.py <<'PY'
import json, sys
f = json.load(sys.stdin)
for name in "", "unfused_":
    median, least, spread = f[name + "ms" if name else "median_ms"], f[name + "min_ms"], f[name + "spread_pct"]
    near = abs(spread - 20) <= 0.06 or abs(median - 1.2 * least) <= 2e-3 * median + 1e-4  # both were rounded
    assert near or f[name + "noisy"] == (spread > 20 or median > 1.2 * least), f
PY
if command -v python3 >/dev/null; then
    expect 0 '' sh -c '"$1" bench "$2" --json --seconds 0.01 | python3 noise.py' - "$weft" "$source/examples/tour.weft"
fi
expect 0 '"runs": 7, .*"executions": null, "throughput": null' \
    "$weft" bench small.weft --json --iterations 7 --warmup 0 --no-verify
expect 0 '"executions": 3, "throughput": [1-9]' "$weft" bench small.weft --json --seconds 0 --executions 3 --no-verify
cat >joined.weft <<'TEXT'
graph @joined(%x: f32[256,256], %y: f32[256,256]) {
  %z: f32[512,256] = concat %x, %y axis=0
  return %z
}
TEXT
expect 0 '100.0 % moving elements$' "$weft" bench joined.weft --seconds 0 --no-verify
expect 0 'ms for 90 % of the runs' "$weft" bench small.weft --seconds 0 --no-verify
expect 2 'wants a whole number from 1' "$weft" bench small.weft --iterations 0
expect 1 'cannot share' "$weft" bench state.weft --seconds 0 --executions 2 --no-verify

# A timeline is JSON, whose events follow each other; nothing is left of one that cannot be written.
expect 0 '^time ' "$weft" run small.weft --trace trace.json
expect 0 '^trace     written to trace.json$' "$weft" run small.weft --trace trace.json
expect 0 '' grep '^{"displayTimeUnit": "ms", "traceEvents": \[$' trace.json
expect 0 '' grep '"ph": "X", "pid": 1, "tid": 2, .*"name":"weft_.*"value":"[a-z]*", "read": [1-9]' trace.json
expect 0 '' grep '"ph": "C".*"arena"' trace.json
if command -v python3 >/dev/null; then
    expect 0 '' python3 -c 'import json; json.load(open("trace.json"))'
fi
expect 1 'nowhere/trace.json: No such file' "$weft" run small.weft --trace nowhere/trace.json

# The first decision that changes an answer: a rewrite, a kernel; none, where the model is not what files expect.
printf 'graph @g(%%x: f32[64,100]) {\n  %%y: f32[64,100] = softmax %%x axis=1\n  return %%y\n}\n' >soft.weft
printf 'graph @g(%%x: f32[64,100]) {\n  %%y: f32[64,100] = exp %%x\n  return %%y\n}\n' >exp.weft
expect 0 '^answer *right: output 0 is off by ' "$weft" bisect soft.weft
expect 1 '^decision *1: decompose.softmax at %y$' "$weft" bisect soft.weft --bound 0
expect 1 '^          plan chose: weft_strip_exp_f32__' "$weft" bisect exp.weft --bound 0
expect 1 '^again *WEFT_STOP_AFTER=1 weft run exp.weft' "$weft" bisect exp.weft --bound 0
cat >sized.weft <<'TEXT'
weft 1
graph @sized<K=1..9000 hint=1>(%x: f32[4,K], %w: f32[K,4]) {
  %y: f32[4,4] = matmul %x, %w
  return %y
}
TEXT
expect 1 "^again *WEFT_STOP_AFTER=1 weft run sized.weft --size K=4000 --threads 1 --cpu baseline --no-fuse; one less" \
    "$weft" bisect sized.weft --bound 0 --size K=4000 --threads 1 --cpu=baseline --no-fuse
expect 0 '^answer *right: output 0' "$weft" bisect sized.weft --size K=4000 # a bound for one term would be too small
"$weft" run exp.weft -o blame --keep-inputs >log
cp blame/output_0.npy blame/input_0.npy # exp of itself
expect 1 'no decision is to blame: the graph as it was read' "$weft" bisect soft.weft --check blame
expect 1 'nowhere/output_0.npy\|nowhere/input_0.npy' "$weft" bisect soft.weft --check nowhere

# Two plans side by side.
expect 0 '^    kernels ' "$weft" diff soft.weft soft.weft
expect 1 '^-  .*softmax\|^+  .*exp %x ! weft_strip_exp' "$weft" diff soft.weft exp.weft
expect 1 '^ *0 *0.000 *1 *[0-9.]*   weft_strip_exp_f32__' "$weft" diff soft.weft exp.weft --time
expect 2 'a second model is missing' "$weft" diff soft.weft
expect 2 'a model .* is missing' "$weft" diff --unfused
expect 2 'takes one model' "$weft" diff --unfused soft.weft soft.weft
expect 1 '^    kernels *1 *[2-9]' "$weft" diff --unfused soft.weft
expect 1 'nowhere.weft: cannot be read' "$weft" diff soft.weft nowhere.weft

# A wrong model made small: the exponential, with the numbers that it reads; nothing where the answer is right.
cat >large.weft <<'TEXT'
graph @large(%x: f32[64,100], %z: f32[64,100]) {
  %a: f32[64,100] = add %x, %z
  %b: f32[64,100] = relu %a
  %w: f32[100,32] = const value=0
  %e: f32[64,100] = exp %b
  %t: f32[100,64] = transpose %e perm=[1 0]
  %u: f32[100,64] = add %t, %t
  %m: f32[64,32] = matmul %b, %w
  return %m, %u, %a
}
TEXT
expect 0 'the answer is right: nothing to reduce' "$weft" reduce large.weft -o reduced
expect 2 '' ls reduced
expect 1 '^1 of 6 nodes are left after [0-9]* attempts$' "$weft" reduce large.weft --bound 0 -o reduced
expect 0 '' grep '^  %e: f32\[64,100\] = exp %b$' reduced/model.weft
expect 0 'agrees' "$weft" run reduced/model.weft --check reduced
expect 1 '^1 of 1 nodes are left' "$weft" reduce reduced/model.weft --check reduced --bound 0 -o reduced
expect 1 'nowhere/reduced: No such file' "$weft" reduce large.weft --bound 0 -o nowhere/reduced

# A page that loads nothing, whole or not there.
expect 0 '^report    written to small.html$' "$weft" report small.weft -o small.html
expect 0 '' grep '^</html>$' small.html
expect 0 '' grep '^{"kind":"unit","value":"[a-z]*",' small.html
expect 0 '' grep '^const machine = {gflops: [0-9.]*, memory: ' small.html
expect 0 '' "$weft" report small.weft --measure -o measured.html
expect 0 '^const machine = {gflops: [1-9][0-9.]*, memory: [0-9.]*, cache: [0-9.]*, measured: true,.*for this page' \
    cat measured.html
expect 0 '' "$weft" report plain.weft -o plain.html
expect 0 '^const inner = \[{"ns":[0-9]*,"value":"again","kernel":"weft_plain_reverse_sequence__ref"}' cat plain.html
expect 1 '' grep -e '@DATA@' -e '@AFTER@' -e '@BEFORE@' -e 'src=' -e '@import' small.html
cat >wide.weft <<'TEXT'
graph @wide<N>(%k: i64[N], %x: f32[N,5]) {
  %y: f32[N,5] = exp %x
  return %y, %k
}
TEXT
# An input that does not fit is called by its file; a byte-order mark is passed over; temporary files go where TMPDIR
# says.
expect 0 '' "$weft" run small.weft -o fits
expect 1 'fits/output_1.npy: input 1 has another type or rank' \
    "$weft" run wide.weft -i fits/output_1.npy -i fits/output_1.npy
expect 2 "called 'gemmm' (did you mean gemm?)" "$harness" resize gemmm
printf '\357\273\277' | cat - small.weft >marked.weft
cp marked.weft marked.txt
expect 0 '' "$weft" run marked.weft
expect 0 '' "$weft" run marked.txt
expect 1 'marked.weft:1:1: expected a graph' sh -c "printf '\357\273\277x' >marked.weft; '$weft' run marked.weft"
expect 1 'TMPDIR-that-is-not-there/weft-reduce' env TMPDIR=/TMPDIR-that-is-not-there "$weft" reduce small.weft
if command -v dot >/dev/null && [ "$readers" != 'run check bench' ]; then
    expect 1 'temporary file in /TMPDIR-that-is-not-there: ' \
        env TMPDIR=/TMPDIR-that-is-not-there "$weft" dot small.weft -o small.svg
fi
# Scopes of names, layers that repeat: in the page's data, and as a browser shows them.
{
    echo 'graph @layers(%x: f32[64,64]) {'
    last=x
    for i in 0 1 2 3 4 5; do
        for op in tanh exp sin; do
            echo "  %enc/layer.$i/mlp/$op: f32[64,64] = $op %$last"
            last=enc/layer.$i/mlp/$op
        done
        echo "  %enc/layer.$i/mm/product: f32[64,64] = matmul %$last, %x"
        last=enc/layer.$i/mm/product
    done
    echo "  return %$last"
    echo '}'
} >layers.weft
expect 0 '' "$weft" report layers.weft --no-fuse -o layers.html
expect 0 '"name":"enc/layer.0 … enc/layer.5","first":[0-9]*,"count":6,"period":1,"copies":6' cat layers.html
expect 0 '"drawn":{"enc/layer.1/mlp/tanh":"enc/layer.0/mlp/tanh"' cat layers.html
if browser=$(command -v chromium) && [ -x "$browser" ]; then
    enter='$("search").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}))'
    script="search('layer.3'); for (const hit of hits) $enter"
    sed "s#</body>#<script>$script</script></body>#" layers.html >searched.html
    show='timeout 120 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=2000 --dump-dom'
    # shellcheck disable=SC2086 # a list of words
    $show "file://$PWD/searched.html" >shown.html 2>/dev/null
    expect 0 'layer.5</b><span class="times">× 6</span><span class="badge">[0-9]* found</span>' cat shown.html
    expect 0 'class="row hit">.*%enc/layer.3/mlp/exp' cat shown.html
fi
expect 1 'nowhere/a.html: No such file' "$weft" report small.weft -o nowhere/a.html
if command -v python3 >/dev/null; then
    cat >page.py <<'PY'
import json, re
page = open("small.html").read()
script = page[page.index("<script>") + 8:]
script = script[:script.index("</script>")]  # a string that holds </script> would end it here
explain = re.search(r"const explain = (\[.*?\n\]);\n", script, re.S)[1]
explain = json.loads(re.sub(r",\n\]$", "\n]", explain))
trace = json.loads(re.search(r"const trace = (\{.*?\n\]\}\n);", script, re.S)[1])
steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == 2]
assert explain[0]["kind"] == "model" and explain[0]["steps"] == len(steps), (explain[0], steps)
assert "openPicture" in script
PY
    expect 0 '' python3 page.py
fi
expect 0 '"agrees": true' "$weft" bench small.weft --json --seconds 0.01
expect 0 '"agrees": true' "$weft" bench "$model/model.onnx" --check "$model" --json --seconds 0
expect 1 'got f32' "$weft" bench "$model/model.onnx" --check folder --seconds 0
mkdir -p wrong
"$weft" run stored.weft --size N=5 -o wrong >log
cp rowmajor/output_0.npy wrong/input_0.npy
expect 1 'WRONG: max abs' "$weft" bench stored.weft --check wrong --seconds 0
expect 1 '"agrees": false' "$weft" bench stored.weft --check wrong --seconds 0 --json
expect 1 'WRONG: max abs' "$weft" run stored.weft --check wrong
expect 0 '"max_abs_err": null' "$weft" bench small.weft --json --seconds 0 --no-verify
expect 0 'median of' "$weft" bench small.weft --seconds 0
if [ "$readers" = 'run check bench' ]; then
    expect 1 'built without' "$weft" dot small.weft
else
    expect 0 '^digraph' "$weft" dot small.weft
    expect 0 ' ms, ' "$weft" dot small.weft --time
    # Every box with a kernel has a time, those of several steps too.
    cat >steps.weft <<'TEXT'
graph @steps(%x: f32[4,4], %z: f32[]) {
  %p: f32[6,6] = pad %x, %z pad=[1 1 1 1]
  %c: f32[12,6] = concat %p, %p axis=0
  %e: f32[12,6] = exp %c
  return %e, %c
}
TEXT
    expect 0 '' "$weft" dot steps.weft --time -o timed.dot
    kernels=$(grep -c '<TD>weft_' timed.dot) times=$(grep -c ' ms, [0-9.]* %' timed.dot)
    expect 0 '' test "$kernels" = 3 -a "$times" = 3
    # All of the detector's, as text, where every value has a name.
    expect 0 '' "$weft" opt "$model/model.onnx" --passes=pipeline -o text/detector.weft
    expect 0 '' "$weft" dot text/detector.weft --time --no-scopes -o timed.dot
    kernels=$(grep -e '<TD>weft_' -e 'label="@[^ ]* weft_' timed.dot | grep -vc weft_placed)
    times=$(grep -c ' ms, [0-9.]* %' timed.dot)
    least=40 # more is in groups where vectors are narrow
    grep -q 'weft_[a-z0-9_]*_avx512' timed.dot && least=60
    expect 0 '' test "$kernels" -gt "$least" -a "$kernels" = "$times"
    # More of scopes and layers: tests/dot. Here: totals, other layers, wrong words.
    expect 0 'layer.0 … enc/layer.5.*x 6' "$weft" dot layers.weft --source --scopes
    expect 0 'drawn: enc/layer.0' "$weft" dot layers.weft --source --scopes
    expect 0 'drawn: enc/layer.4' "$weft" dot layers.weft --source --expand layer.4
    expect 0 'drawn: enc/layer.3' "$weft" dot layers.weft --source --expand enc/layer.3/mlp/exp
    expect 0 '[0-9] ms, [0-9.]* %, [0-9.]* [km]*B' "$weft" dot layers.weft --scopes --time --no-fuse
    expect 0 '24 nodes' "$weft" dot layers.weft --source --scopes --all-layers
    expect 0 'enc/layer.2/mlp/exp' "$weft" dot layers.weft --source --focus layer.2
    expect 1 'did you mean enc/layer.2' "$weft" dot layers.weft --source --expand enc/layr.2
    expect 2 'exclude each other' "$weft" dot layers.weft --scopes --no-scopes
    expect 2 'exclude each other' "$weft" dot layers.weft --expand layer.1 --no-scopes
    expect 2 'exclude each other' "$weft" dot layers.weft --expand layer.1 --all-layers
    expect 1 "named 'nothing'" "$weft" dot small.weft --focus nothing
    expect 1 "named 'expo'" "$weft" dot small.weft --focus expo
    expect 1 "named 'input_x' (did you mean %input.x?)" "$weft" dot named.weft --focus input_x
    expect 1 'folder/that/is/not/there' "$weft" dot small.weft -o folder/that/is/not/there.dot
    if command -v dot >/dev/null; then
        expect 0 '' "$weft" dot small.weft -o small.svg
        expect 0 '</svg>' cat small.svg
    fi
fi

# Prices: measured, written, found again; refused where they are damaged, unknown or another machine's.
cat >pictures.weft <<'TEXT'
weft 1
graph @pictures(%x: f32[1,32,14,14], %w: f32[32,32,3,3]) {
  %y: f32[1,32,14,14] = conv %x, %w pad=[1 1 1 1]
  %z: f32[1,32,14,14] = max_pool %y kernel=[3 3] pad=[1 1 1 1]
  return %z
}
TEXT
expect 0 'prices: shipped' "$weft" explain pictures.weft
expect 0 'written to quick.prices' "$weft" calibrate --quick -o quick.prices
expect 0 '^conv_point_first [1-9][0-9]*$' cat quick.prices
expect 0 'prices: quick.prices' env WEFT_PRICES=quick.prices "$weft" explain pictures.weft
expect 0 'f32\[1,32,14,14\]' env WEFT_PRICES=quick.prices "$weft" run pictures.weft
expect 0 '"threads": 1, "prices": {"read_private": {"price": ' \
    "$weft" calibrate --quick --json --threads 1 -o one.prices
for caches in 48K,1M,32M 48K,2M,4M; do # the cases are sized by the caches
    expect 0 'written to sized.prices' env WEFT_CACHES="$caches" "$weft" calibrate --quick -o sized.prices
done
expect 0 '^lanes [0-9]' cat quick.prices
expect 0 'written to narrow.prices' "$weft" calibrate --shipped --cpu baseline -o narrow.prices
expect 0 '^lanes 16$' cat narrow.prices # where they were measured, whatever the level that will use them
expect 0 'resize by weights' "$weft" calibrate --list
expect 0 'read_shared  *8930 ' "$weft" calibrate --list --cpu avx2
expect 2 "no CPU level" "$weft" calibrate --list --cpu avx3
expect 1 'nowhere' "$weft" calibrate --shipped -o folder/that/is/nowhere/a.prices
expect 2 'one word too many' "$weft" calibrate here
sed -e 's/^read_shared/read_shard/' quick.prices >unknown.prices
expect 1 "unknown.prices:6:1: no price is called 'read_shard'" \
    env WEFT_PRICES=unknown.prices "$weft" run pictures.weft
sed -e 's/^machine .*/machine GenuineOther-6-1/' quick.prices >other.prices
expect 1 'prices of another machine: GenuineOther-6-1, and this is' \
    env WEFT_PRICES=other.prices "$weft" run pictures.weft
{ sed 7q quick.prices && printf 'access_'; } >cut.prices
expect 1 "cut.prices:8:1: 'access_' wants one value" env WEFT_PRICES=cut.prices "$weft" run pictures.weft
sed 7q quick.prices >short.prices
expect 1 'short.prices: write_private is missing, and more' env WEFT_PRICES=short.prices "$weft" run pictures.weft
expect 1 'nowhere.prices: No such file or directory' env WEFT_PRICES=nowhere.prices "$weft" run pictures.weft
sed -e 's/-[^-]*$/-fpu/; 3,$d' quick.prices >levels.head
sed -e 1,2d quick.prices >levels.tail
cat levels.head levels.tail >levels.prices
expect 0 'levels.prices:2:9: warning: these are prices of kernels of other levels' \
    env WEFT_PRICES=levels.prices "$weft" explain pictures.weft
expect 0 'prices: shipped' env WEFT_PRICES=levels.prices "$weft" explain pictures.weft
expect 0 'warning: .*the shipped prices are used' \
    env WEFT_PRICES=quick.prices "$weft" run --cpu baseline pictures.weft
expect 1 'nowhere.prices: No such file or directory, and WEFT_PRICES names it as the file of prices' \
    env WEFT_PRICES=nowhere.prices "$weft" run pictures.weft
expect 1 '/tmp: this is a folder, and WEFT_PRICES names it as the file of prices' \
    env WEFT_PRICES=/tmp "$weft" run pictures.weft
expect 1 'pipe.weft: this is no file of prices' timeout 10 env WEFT_PRICES=pipe.weft "$weft" run pictures.weft
cached="env -u WEFT_PRICES XDG_CACHE_HOME=$work/cache"
mask=$(umask)
umask 002 # compiled code is refused from a folder that a group may write (codegen/compiler.h)
expect 0 "written to $work/cache/weft/.*[.]prices" $cached "$weft" calibrate --shipped
umask "$mask"
expect 0 '^drwx------' ls -ld "$work/cache/weft"
expect 0 'prices: .*/cache/weft/' $cached "$weft" explain pictures.weft
for file in cache/weft/*.prices; do
    echo 'weft prices 1' >"$file"
done
expect 0 'warning: .* is missing' $cached "$weft" explain pictures.weft

# What constants may take that are computed while compiling, and what took it.
cat >constants.weft <<'TEXT'
graph @constants(%x: f32[300,300], %z: f32[300,64]) {
  %e: f32[300,4] = const random=1
  %k: f32[4,300] = const random=2
  %large: f32[300,300] = matmul %e, %k
  %d: f32[300,900] = const random=3
  %w: f32[900,64] = const random=4
  %small: f32[300,64] = matmul %d, %w
  %a: f32[300,300] = add %x, %large
  %b: f32[300,64] = add %z, %small
  %y: f32[300,64] = matmul %a, %b
  return %y
}
TEXT
expect 0 'computed at %large: .* 360000 bytes' "$weft" explain constants.weft
expect 0 'computed at %small: .* 76800 bytes' "$weft" explain constants.weft --constant-bytes 100K
expect 0 "of the plan's budget of 102400 bytes 1 value took 76800" "$weft" explain constants.weft --constant-bytes=100K
expect 0 "of the plan's budget of 76000 bytes 0 values took 0" "$weft" explain constants.weft --constant-bytes 76000
expect 0 '%small  matmul  kept' "$weft" explain constants.weft --constant-bytes 0
expect 0 '%small: f32\[300,64\]{-} = matmul' "$weft" opt constants.weft --print=plan --constant-bytes 0
expect 0 '%small: f32\[300,64\] = const' "$weft" opt constants.weft --print=plan --constant-bytes 1G
expect 0 '^op.matmul 3$' "$weft" opt constants.weft --print=stats --constant-bytes 0
expect 0 '^  all: kernels=3 groups=2 ' "$weft" opt constants.weft --print=stats --target=avx2 --constant-bytes 0
expect 0 '^  unfused: kernels=3 groups=0 ' "$weft" opt constants.weft --print=stats --target=avx2 --constant-bytes 1G
expect 0 '^  all: kernels=5 groups=0 ' \
    "$weft" opt constants.weft --print=stats --target=avx2 --constant-bytes 0 --no-fuse
expect 2 'weft opt: --no-fuse goes with --print=plan, choices, c, stats or times, without --passes' \
    "$weft" opt constants.weft --no-fuse
expect 0 '^fuse  *1  *1  *1  *[0-9.]*$' "$weft" opt constants.weft --print=times --target=avx2
expect 0 '^cse  *1  *0  *0  *[0-9.]*$' "$weft" opt constants.weft --print=times --passes=cse
expect 0 '^plan  *[0-9.]*$' "$weft" opt constants.weft --print=times --constant-bytes 0
expect 0 'agrees' "$weft" bench constants.weft --constant-bytes 1M --seconds 0
expect 0 '^plan *3 kernels' "$weft" run constants.weft
expect 0 '^plan *3 kernels' "$weft" run constants.weft --constant-bytes 0
for wrong in '' x 1.5M -1 64KB 9999999999G 99999999999999999999; do
    expect 2 "weft run: --constant-bytes wants a number of bytes, as 65536, 64K, 64M or 2G, not '$wrong'" \
        "$weft" run constants.weft --constant-bytes "$wrong"
done
expect 2 'weft opt: --constant-bytes goes with --print=plan, choices, c, stats or times, without --passes' \
    "$weft" opt constants.weft --constant-bytes 1M
expect 2 'weft opt: --constant-bytes goes with --print=plan, choices, c, stats or times, without --passes' \
    "$weft" opt constants.weft --print=plan --passes=dce --constant-bytes 1M
for command in run bench explain opt; do
    expect 0 '--constant-bytes N' "$weft" $command --help
done

printf 'graph @one(%%x: f32[4]) {\n  %%y: f32[4] = exp %%x\n  return %%y\n}\n' >one.weft
# Choices, those of bodies behind the others.
cat >looping.weft <<'TEXT'
graph @g(%n: i64[], %x: f32[4]) {
  graph @body(%i: i64[], %a: f32[4]) {
    %b: f32[4] = exp %a
    return %b
  }
  %y: f32[4] = loop %n, %x body=@body
  %z: f32[4] = neg %y
  return %z
}
TEXT
expect 0 '^  %z = neg$' "$weft" opt looping.weft --print=choices
expect 0 '^  %b = exp  in body @body$' "$weft" opt looping.weft --print=choices
cat >grouped.weft <<'EOF'
graph @f(%x: f32[64,300]) {
  %s: f32[64,300] = softmax %x axis=1
  return %s
}
EOF
expect 0 '^  %s = group @' "$weft" opt grouped.weft --print=choices
expect 0 '^void weft_.*const struct weft_program_tile .tile.$' "$weft" opt grouped.weft --print=c --target=avx2
expect 0 '= vexp_below(v[0-9]*); /. %[0-9]* = exp %[0-9]* ./$' "$weft" opt grouped.weft --print=c --target=avx2
expect 0 '^fuse  *1  *1  *1  *[0-9.]*$' "$weft" opt grouped.weft --print=times --target=avx2
cat >composites.weft <<'EOF'
graph @f(%x: f32[64,300], %up: f32[64,300]) {
  %g: f32[64,300] = gelu %x
  %s: f32[64,300] = silu %g
  %y: f32[64,300] = mul %s, %up
  return %y
}
EOF
expect 0 'op_gelu(v[0-9]*); /. %[0-9]* = gelu %[0-9]* ./$' "$weft" opt composites.weft --print=c --target=avx2
expect 0 'op_silu(v[0-9]*); /. %[0-9]* = silu %[0-9]* ./$' "$weft" opt composites.weft --print=c --target=avx2
expect 0 '' "$weft" opt constants.weft --print=choices --constant-bytes 1M
expect 0 ': 2 nodes read, 2 planned as 2 steps, 0 of them' "$weft" explain looping.weft
expect 0 ': 1 node read, 1 planned as 1 step, 0 of them' "$weft" explain one.weft

# Which choice: what is no number from 1 on is none, and a large one means the last.
for wrong in '' 0 00 -1 x 2x ' 2' 1.5; do
    expect 0 "warning: WEFT_CHOICE: '$wrong' is not the number of a choice, from 1 on" \
        env WEFT_CHOICE="$wrong" "$weft" opt small.weft --print=plan --target=avx2
    expect 0 '= add .* weft_strip_add_i64__avx2' \
        env WEFT_CHOICE="$wrong" "$weft" opt small.weft --print=plan --target=avx2
done
for large in 99 2147483647 2147483648 4294967297 99999999999999999999; do
    expect 0 '= exp .* weft_reference' \
        env WEFT_CHOICE="$large" "$weft" opt small.weft --print=plan --target=avx2
done

# What excludes each other, and what there is to choose from.
for command in run bench explain dot; do
    expect 2 "weft $command: --no-winograd and --winograd-4 exclude each other" \
        "$weft" $command pictures.weft --no-winograd --winograd-4
done
expect 0 'small.weft: 3 nodes read' "$weft" explain small.weft --size N=7 --threads 1
expect 2 'goes without --size' "$weft" explain small.weft --size N=7 --measure
# Results of nothing but padding, and large: bands of rows of an x that has no columns.
cat >padding.weft <<'TEXT'
weft 1
graph @padding(%x: f32[1,512,512,0]{0 2 3 1}) {
  %w: f32[512,1,3,3] = const random=1
  %y: f32[1,512,512,4]{0 2 3 1} = conv %x, %w pad=[1 3 1 3] groups=512
  return %y
}
TEXT
expect 0 'output 0 ' "$weft" run padding.weft --threads 1
expect 2 'groups with timed cases: .*conv-3x3 .*gemm-square' "$harness" --bench nosuch
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
