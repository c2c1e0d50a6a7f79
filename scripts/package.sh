#!/usr/bin/env bash
# Makes the release as one folder and one archive that run on any Linux of this architecture with glibc 2.28 or newer:
#
#   scripts/package.sh [FOLDER]      (default: build/portable/dist)
#
# FOLDER/tidemark-VERSION-linux-ARCH/{bin,lib,share,…} holds Tidemark with the libraries that it needs linked in, and their licences.
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/portable.sh
mkdir -p "${1:-build/portable/dist}"
output=$(cd "${1:-build/portable/dist}" && pwd)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/portable/CMakeCache.txt)
name=tidemark-$version-linux-$(uname -m)
root=$output/$name
rm -rf "$root"
cmake --install build/portable --prefix "$root" --strip >/dev/null
cp LICENSE "$root/share/doc/tidemark/"
"$root/bin/tidemark" --version >/dev/null

tar -C "$output" --sort=name --owner=0 --group=0 -czf "$output/$name.tar.gz" "$name"
say "$root ($(du -sh "$root" | cut -f1)), $output/$name.tar.gz ($(du -sh "$output/$name.tar.gz" | cut -f1))"
