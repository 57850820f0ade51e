#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Libraries of custom functions: each subcommand that loads a model takes --custom, and what cannot be loaded is said.
# usage: check_custom.sh WEFT MODEL-WRITER TOP_TWO.so NO_SYMBOL.so OTHER_VERSION.so FAILING.so
set -u
weft=$(realpath "$1") writer=$(realpath "$2") library=$(realpath "$3")
no_symbol=$(realpath "$4") other_version=$(realpath "$5") failing=$(realpath "$6")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# expect CODE TEXT COMMAND…: the exit code, and a part of what is said on either stream.
expect() {
    code=$1 text=$2
    shift 2
    out=$("$@" 2>&1)
    got=$?
    if [ $got -ne "$code" ] || ! printf '%s\n' "$out" | grep -qF -- "$text"; then
        echo "exit code $got instead of $code, or '$text' is not said: $*"
        printf '%s\n' "$out" | head -20
        failures=$((failures + 1))
    fi
}

"$writer" TopTwo model.onnx && "$writer" TopThree three.onnx || exit 1
cat >right.weft <<END
weft 1
graph @right<N>(%x: f32[N,64]) {
  %r: f32[N,64] = relu %x
  %t: f32[N,2], %i: i64[N,2] = top_k %r axis=1 k=2
  %v: f32[N,2] = softmax %t axis=1
  return %v, %i
}
END
cat >same.weft <<END
weft 1
graph @same<N>(%x: f32[N,64]) {
  %y: f32[N,64] = relayout %x
  return %y
}
END

# The same numbers as weft's own ops give, on one thread and on all, at one size and another.
for size in 3 5000; do
    expect 0 'output 0' "$weft" run same.weft --size N=$size -o right
    mv right/output_0.npy right/input_0.npy
    expect 0 'output 1' "$weft" run right.weft -i right/input_0.npy -o right
    for threads in 1 2 4; do
        expect 0 'agrees' "$weft" run model.onnx --custom "$library" --threads $threads --check right
    done
    expect 0 'agrees' "$weft" run model.onnx --custom "$library" --reference --check right
done

cp "$library" here.so
expect 0 'custom.top_two' "$weft" run model.onnx --custom=here.so --kernels
expect 0 'can run' "$weft" check model.onnx --custom "$library"
expect 0 'agrees' "$weft" bench model.onnx --custom "$library"
expect 0 'custom.top_two' "$weft" explain model.onnx --custom "$library"
case $("$weft" dot model.onnx --custom "$library" -o model.dot 2>&1) in
*'built without Graphviz'*) ;;
*) expect 0 '' "$weft" dot model.onnx --custom "$library" -o model.dot ;;
esac
expect 0 'kernels' "$weft" diff model.onnx model.onnx --custom "$library"
expect 0 'right' "$weft" bisect model.onnx --custom "$library"
expect 0 'right' "$weft" reduce model.onnx --custom "$library"
expect 0 '' "$weft" report model.onnx --custom "$library" -o model.html
expect 0 '%v: f32[N,2], %i: i64[N,2] = custom %r function=top_two with=[softmax=1]' \
    "$weft" opt --custom "$library" model.onnx
expect 0 'parts=' "$weft" opt --custom "$library" --print=plan model.onnx
cat >ten.weft <<END
graph @ten(%x: f32[10,64]) {
  %v: f32[10,2], %i: i64[10,2] = custom %x function=top_two
  return %v, %i
}
END
expect 0 ' flops=1280' "$weft" opt --custom "$library" --print=stats ten.weft # what its cost function says
mkdir -p cases/top_two/test_data_set_0
cp model.onnx cases/top_two/
expect 1 'there is no data for input x' "$weft" conform cases --custom "$library"
expect 0 'skipped' "$weft" conform cases
for command in run check bench explain dot diff bisect reduce report conform opt; do
    expect 0 '--custom F.so' "$weft" $command --help
done

# A text that it printed is read back.
"$weft" opt --custom "$library" model.onnx >again.weft
expect 0 'agrees' "$weft" run again.weft --custom "$library" --check right

# What is missing or wrong.
expect 1 'register a custom function for op "TopTwo" of domain "acme"' "$weft" run model.onnx
expect 1 'register a custom function for op "TopThree" of domain "acme"' "$weft" check three.onnx --custom "$library"
expect 1 "custom function 'top_two' is not registered" "$weft" run again.weft
expect 1 './nowhere.so: cannot open shared object file' "$weft" run model.onnx --custom ./nowhere.so
expect 1 'the library has no symbol weft_custom_library' "$weft" run model.onnx --custom "$no_symbol"
expect 1 "was built for version 2 of weft's interface for such libraries; this weft has version 1" \
    "$weft" run model.onnx --custom "$other_version"
expect 1 'the library did not register its functions: hollow: a custom function has no run' \
    "$weft" run model.onnx --custom "$failing"
expect 1 "top_two: a custom function of this name is registered already" \
    "$weft" run model.onnx --custom "$library" --custom "$library"
expect 2 '--custom wants a value' "$weft" run model.onnx --custom
[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
