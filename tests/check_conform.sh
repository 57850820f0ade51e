#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All backend tests of ONNX, from an archive; skips itself where that is not there. None may fail.
# usage: check_conform.sh WEFT ARCHIVE
set -u
weft=$(realpath "$1")
[ -r "$2" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$2" -C "$work" || exit 77
"$weft" conform "$work"
