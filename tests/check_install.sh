#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `meson install` leaves behind is enough: a program finds weft by pkg-config and by CMake, compiles, links (also
# statically) and runs, in C and C++, and the installed command starts.
# usage: check_install.sh MESON SOURCE BUILD "CC" "CXX or empty" ARCHIVE
set -eu
meson=$1 source=$2 build=$3 cc=$4 cxx=$5 archive=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 skipped=0
# runs PROGRAM: its output if it fails
runs() {
    "$1" >"$work/log" || { cat "$work/log"; exit 1; }
    passed=$((passed + 1))
}
# An archive that is not installed may be a list of objects: one that has them.
copy_archive() {
    if [ "$(head -c 7 "$archive")" = '!<thin>' ]; then
        (cd "$(dirname "$archive")" && ar t "$archive" | xargs ar qcs "$1")
    else
        cp "$archive" "$1"
    fi
}
DESTDIR="$work/root" "$meson" install -C "$build" --no-rebuild --quiet
pc=$(find "$work/root" -name weft.pc)
library=$(dirname "$(find "$work/root" -name libweft.so)")
prefix=$(dirname "$(find "$work/root" -type d -name include)")
export PKG_CONFIG_PATH="${pc%/*}" LD_LIBRARY_PATH="$library"
flags=$(PKG_CONFIG_SYSROOT_DIR="$work/root" pkg-config --cflags --libs weft)
# shellcheck disable=SC2086 # lists of words
$cc -std=c17 -Wall -Wextra -Werror "$source/examples/embed.c" -o "$work/embed" $flags -lm
runs "$work/embed"
if [ -n "$cxx" ]; then
    cat >"$work/version.cc" <<'TEXT'
#include <weft/weft.h>
#include <cstring>
int main() { return std::strcmp(weft_version(), WEFT_VERSION); }
TEXT
    # shellcheck disable=SC2086
    $cxx -std=c++17 -Wall -Wextra -Werror "$work/version.cc" -o "$work/version" $flags
    runs "$work/version"
else
    echo "skipped: C++, for which there is no compiler"
    skipped=$((skipped + 1))
fi

# The archive alone in a folder, so that -lweft means it.
mkdir "$work/static"
copy_archive "$work/static/libweft.a"
flags=$(pkg-config --static --define-variable=libdir="$work/static" --define-variable=includedir="$prefix/include" \
    --cflags --libs weft)
# shellcheck disable=SC2086
$cc -std=c17 -Wall -Wextra -Werror "$source/examples/embed.c" -o "$work/embed_static" $flags
if ldd "$work/embed_static" | grep libweft; then
    echo "embed_static needs the shared library"
    exit 1
fi
runs "$work/embed_static"

# Both ways by CMake.
if cmake --version >/dev/null 2>&1; then
    cp "$work/static/libweft.a" "$library"
    mkdir "$work/project"
    cat >"$work/project/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.13)
project(embed C)
find_package(weft 0.2 REQUIRED)
foreach(kind weft static)
  add_executable(embed_\${kind} "$source/examples/embed.c")
  target_link_libraries(embed_\${kind} weft::\${kind} m)
endforeach()
TEXT
    cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
        cmake --build "$work/project/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    runs "$work/project/build/embed_weft"
    runs "$work/project/build/embed_static"
    sed -i 's/weft 0.2/weft 99/' "$work/project/CMakeLists.txt"
    if cmake -S "$work/project" -B "$work/project/newer" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1; then
        echo "find_package(weft 99) finds this weft"
        exit 1
    fi
else
    echo "skipped: find_package(weft), since there is no cmake"
    skipped=$((skipped + 1))
fi
find "$work/root" -name weft -path '*/bin/*' -exec {} --version \;
echo "$passed passed, 0 failed, $skipped skipped"
