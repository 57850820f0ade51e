#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes go one way. Left of the colon a folder, right of it the folders whose headers its files may include; every
# folder may also include its own. "weft" is include/weft. Kernels see no graph; nothing sees the tools or the kernel
# harness, which runs the samples of the tests.
# usage: check_includes.sh SOURCE
set -u
cd "$1" || exit 1
allowed='
kernels:
ir:       weft
eval:     weft ir kernels
onnx:     weft ir eval
codegen:  weft ir kernels
passes:   weft ir eval sched
sched:    weft ir eval kernels codegen
plan:     weft ir kernels codegen sched passes
runtime:  weft ir eval kernels sched passes plan onnx
viz:      weft ir
tools:    weft ir eval kernels codegen sched passes onnx plan runtime viz
check:    weft ir eval kernels codegen plan runtime tests
examples: weft
'
status=0
for folder in kernels ir eval codegen onnx passes sched plan runtime viz tools check examples; do
    may=$(printf '%s\n' "$allowed" | sed -n "s/^$folder: *//p")
    for file in $(find "$folder" -name '*.[ch]' -o -name '*.def' -o -name '*.inc' | sort); do
        case $folder in
        examples) pattern='s/^ *# *include *[<"]\(weft\/[^>"]*\).*/\1/p; s/^ *# *include *"\([^"]*\)".*/\1/p' ;;
        *) pattern='s/^ *# *include *"\([^"]*\)".*/\1/p' ;;
        esac
        for header in $(sed -n "$pattern" "$file"); do
            [ -e "$(dirname "$file")/$header" ] && continue # its own folder
            to=${header%%/*}
            case " $folder $may " in
            *" $to "*) ;;
            *)
                echo "$file includes $header: $folder may include its own headers and those of: ${may:-nothing}"
                status=1
                ;;
            esac
            if [ ! -e "$header" ] && [ ! -e "include/$header" ]; then
                echo "$file includes $header, which is not there"
                status=1
            fi
        done
    done
done
exit $status
