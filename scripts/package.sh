#!/usr/bin/env bash
# Makes the release as one folder and one archive that run on any x86-64 Linux with glibc 2.36 or newer:
#
#   scripts/package.sh [FOLDER]      (default: build/package/dist)
#
# FOLDER/tidemark-VERSION-linux-ARCH/{bin,lib,share,…} holds Tidemark and the libraries that it needs and a plain machine
# lacks, with their licences; bin/tidemark looks for them in ../lib only. The preloaded library needs none of them.
cd "$(dirname "$0")/.."
. scripts/common.sh

mkdir -p build "${1:-build/package/dist}"
output=$(cd "${1:-build/package/dist}" && pwd)
scripts/setup.sh --no-tests
cmake --preset package >build/configure-package.log 2>&1 || { cat build/configure-package.log >&2 && exit 1; }
cmake --build --preset package

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/package/CMakeCache.txt)
name=tidemark-$version-linux-$(uname -m)
root=$output/$name
rm -rf "$root"
cmake --install build/package --prefix "$root" --strip >/dev/null

# The C and C++ runtimes are the machine's own: older ones here than there would break what it loads.
runtimes='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
licences=$root/share/doc/tidemark/licences
mkdir -p "$licences"
ldd build/package/bin/tidemark | awk '$2 == "=>" { print $1, $3 }' | while read -r soname path; do
  [[ $soname =~ $runtimes ]] && continue
  install -m 644 "$path" "$root/lib/$soname"
  # The package may know the file below /lib or /usr/lib, which are the same folder.
  package=$(dpkg-query -S "*${path#/usr}" | sed -n '1s/:.*//p')
  cp "/usr/share/doc/$package/copyright" "$licences/$package"
done
cp LICENSE "$root/share/doc/tidemark/"

# Nothing may come from outside the folder but the runtimes.
outside=$(ldd "$root/bin/tidemark" | awk '$2 == "=>" { print $1, $3 }' | grep -Ev "$runtimes" | grep -Fv "$root/bin/../lib/" || true)
[[ -z $outside ]] || fail "bin/tidemark still needs: $outside"
"$root/bin/tidemark" --version >/dev/null

tar -C "$output" --sort=name --owner=0 --group=0 -czf "$output/$name.tar.gz" "$name"
say "$root ($(du -sh "$root" | cut -f1)), $output/$name.tar.gz ($(du -sh "$output/$name.tar.gz" | cut -f1))"
