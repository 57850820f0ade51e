#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `meson install` leaves behind is enough: a program finds weft by pkg-config, compiles, links and runs, in C and
# C++, and the installed command starts.
# usage: check_install.sh MESON SOURCE BUILD "CC" "CXX or empty"
set -eu
meson=$1 source=$2 build=$3 cc=$4 cxx=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR="$work/root" "$meson" install -C "$build" --no-rebuild --quiet
pc=$(find "$work/root" -name weft.pc)
library=$(dirname "$(find "$work/root" -name libweft.so)")
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$work/root" LD_LIBRARY_PATH="$library"
flags=$(pkg-config --cflags --libs weft)
# shellcheck disable=SC2086 # lists of words
$cc -std=c17 -Wall -Wextra -Werror "$source/examples/embed.c" -o "$work/embed" $flags -lm
"$work/embed" >"$work/log" || { cat "$work/log"; exit 1; }
if [ -n "$cxx" ]; then
    cat >"$work/version.cc" <<'TEXT'
#include <weft/weft.h>
#include <cstring>
int main() { return std::strcmp(weft_version(), WEFT_VERSION); }
TEXT
    # shellcheck disable=SC2086
    $cxx -std=c++17 -Wall -Wextra -Werror "$work/version.cc" -o "$work/version" $flags
    "$work/version"
fi
find "$work/root" -name weft -path '*/bin/*' -exec {} --version \;
