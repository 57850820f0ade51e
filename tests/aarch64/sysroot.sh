#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks the libraries of Debian for arm64 that the build takes into a folder: from the mirrors that this machine has,
# with lists and a status of packages of their own, so that neither the machine's packages nor its architectures change.
# Nothing is done where the folder has them.
# usage: sysroot.sh FOLDER
set -eu
packages='libcdt5 libcgraph6 libcmocka-dev libcmocka0 libgraphviz-dev libjansson-dev libjansson4 libpng-dev
libpng16-16 libxxhash-dev libxxhash0 zlib1g zlib1g-dev'
mkdir -p "$1"
folder=$(realpath "$1")
[ "$(cat "$folder/packages" 2>/dev/null || :)" != "$packages" ] || exit 0
state=$folder.apt
rm -rf "$state"
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/packages"
: >"$state/status"
cat >"$state/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "$(id -un)";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
CONF
export APT_CONFIG="$state/apt.conf"
apt-get update -q
cd "$state/packages"
# shellcheck disable=SC2086 # a list of words
apt-get download -q $packages
for package in *.deb; do
    dpkg-deb -x "$package" "$folder"
done
cp -a "$folder/lib/aarch64-linux-gnu/." "$folder/usr/lib/aarch64-linux-gnu/" # one folder, as on a system of today
printf '%s\n' "$packages" >"$folder/packages"
rm -rf "$state"
