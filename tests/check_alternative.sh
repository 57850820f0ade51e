#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example's alternative is taken where it says that it takes no time, and not where weft's product takes less; wide
# products are not asked about.
# usage: check_alternative.sh ALTERNATIVE
set -u
out=$(WEFT_PRICES='' "$1") || { printf '%s\n' "$out"; exit 1; }
status=0
said() {
    [ "$(printf '%s\n' "$out" | grep -Ec "$1")" = 1 ] || { echo "not once: $1"; status=1; }
}
said '^choose_alternatives\.multiply_and_add: chose %.*: predicted to take 0\.205 us, as it is .* in the place of 1$'
said '^choose_alternatives\.multiply_and_add: refused %.*: it would take 102\.400 us, as it is '
[ $status = 0 ] || printf '%s\n' "$out"
exit $status
