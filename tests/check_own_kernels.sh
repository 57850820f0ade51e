#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the example about kernels of one's own says: check_own_kernels.sh PROGRAM
set -eu
out=$("$1")
said() {
    printf '%s\n' "$out" | grep -qE "$1" || { echo "not said: $1"; printf '%s\n' "$out"; exit 1; }
}
said '^conv +c1 +toy.blocked +stored 0 1/16 2 3 1%16$'
said '^add +a2 +stored 0 1/16 2 3 1%16$'
said '^conv +y +toy.plain +stored 0 1 2 3$'
said 'converted %w1: .* once, for conv %c1, which cannot read it as it is$'
said 'chose %c1: .* by toy.blocked, .* us to write and read; .* by toy.plain would cost [0-9.]+ us more$'
said 'chose %c2: .* by toy.blocked, .* us to write and read; .* by toy.plain would cost [0-9.]+ us more$'
[ "$(printf '%s\n' "$out" | grep -c '^relayout')" = 4 ] || { echo 'not 4 relayouts'; printf '%s\n' "$out"; exit 1; }
