#!/usr/bin/env bash
# Builds Tidemark into build/portable so that it runs on any Linux of this architecture with glibc 2.28 (2018) or newer, and needs
# nothing else there: the C++ runtime and Debian's libraries are linked in. scripts/wheel.sh and scripts/package.sh pack it.
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/setup.sh --portable
export TIDEMARK_PORTABLE_ROOT=$portable_folder
libraries=$portable_folder/usr/lib/$(uname -m)-linux-gnu

# The compiler uses no folder of this machine; it gets the headers and archives of these packages, without shared libraries.
gather_libraries() {
  local packages=(libbrotli-dev libcairo2-dev libcli11-dev libelf-dev libexpat1-dev libfmt-dev libfontconfig-dev libfreetype-dev
    liblz4-dev liblzma-dev libncurses-dev libnats-dev libpixman-1-dev libpng-dev libprotozero-dev libsqlite3-dev libssl-dev libutf8proc-dev libzstd-dev nlohmann-json3-dev zlib1g-dev)
  packages+=("$(dpkg-query -W -f '${Depends}' libpython3-dev | grep -o '^libpython[0-9.]*-dev')")
  rm -rf "${portable_folder:?}"/{usr,licences}
  mkdir -p "$portable_folder/licences"
  local package
  for package in "${packages[@]}"; do
    dpkg -L "$package" | sed -n -E '/\.so$/d; s,^/(usr/(include|lib|share/(cmake|pkgconfig))/),\1,p' |
      tar -c -C / --no-recursion --files-from - | tar -x -C "$portable_folder"
    [[ $package == libpython* ]] || cp "/usr/share/doc/$package/copyright" "$portable_folder/licences/${package%-dev}"
  done
  cp "$portable_folder"/tools/lib/python3*/site-packages/ziglang/lib/libcxx/LICENSE.TXT "$portable_folder/licences/libc++"

  # Python's and OpenSSL's are in a folder that compilers of other systems do not search.
  mv "$portable_folder"/usr/include/*-linux-gnu/openssl/* "$portable_folder/usr/include/openssl/"
  mv "$portable_folder"/usr/include/*-linux-gnu/python3*/pyconfig.h "$portable_folder"/usr/include/python3*/
  # X11 and GLib are not linked, because they are only for windows.
  sed -i 's/^Requires.private:.*/Requires.private: pixman-1 fontconfig freetype2 libpng/' "$libraries/pkgconfig/cairo.pc"
}

# compile_archive NAME SOURCE... [-- OPTION...]: makes libNAME.a of C sources, with position-independent code.
compile_archive() {
  local name=$1 sources=() objects
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do sources+=("$1") && shift; done
  objects=$(mktemp -d)
  printf '%s\0' "${sources[@]}" | (cd "$objects" && xargs -0 -n 8 -P "$(jobs)" "$portable_folder/bin/clang" -c -O2 -DNDEBUG -fPIC -w \
    -ffunction-sections -fdata-sections -fvisibility=hidden "${@:2}")
  rm -f "$libraries/lib$name.a"
  ar rcs "$libraries/lib$name.a" "$objects"/*.o
  rm -r "$objects"
}

# unpack_source URL SHA256: the folder of a source package of Debian 12.
unpack_source() {
  local archive=$portable_folder/sources/${1##*/}
  if [[ ! -e $archive ]]; then
    mkdir -p "${archive%/*}"
    curl -sSf -o "$archive.part" "http://deb.debian.org/debian/pool/main/$1" || fail "cannot fetch $1"
    echo "$2  $archive.part" | sha256sum -c --quiet || fail "$1 is not the file that was expected"
    mv "$archive.part" "$archive"
  fi
  tar -xf "$archive" -C "$portable_folder/sources"
  tar -tf "$archive" | sed -n "1s,^\([^/]*\).*,$portable_folder/sources/\1,p"
}

# Debian's archives of these two have thread-local variables with a program's access model, which no linker option changes for a Python module. pixman
# is compiled without processor-specific variants: charts are small.
compile_libraries() {
  local folder
  folder=$(unpack_source p/pixman/pixman_0.42.2.orig.tar.gz ea1480efada2fd948bc75366f7c349e1c96d3297d09a3fe62626e38e234a625e)
  local sources=()
  mapfile -t sources < <(find "$folder/pixman" -name 'pixman*.c' | grep -Ev 'pixman-(mmx|sse2|ssse3|vmx|arm-|mips-|region\.c)')
  compile_archive pixman-1 "${sources[@]}" -- -I"$folder/pixman" -I"$portable_folder/usr/include/pixman-1" -DHAVE_PTHREADS -DTLS=__thread \
    -DPACKAGE='"pixman"' -DHAVE_BUILTIN_CLZ

  folder=$(unpack_source e/elfutils/elfutils_0.188.orig.tar.bz2 fb8b0e8d0802005b9a309c60c1d8de32dd2951b56f0c3a3cb56d21ce01595dff)
  echo '#include "eu-config.h"' >"$folder/lib/config.h"
  compile_archive elf "$folder"/libelf/*.c -- -I"$folder/libelf" -I"$folder/lib" -isystem "$portable_folder/usr/include" -D_GNU_SOURCE \
    -DHAVE_{CONFIG,ERR,ERROR,STDATOMIC}_H -DHAVE_VISIBILITY -DHAVE_DECL_{MEMPCPY,MEMRCHR,POWEROF2,RAWMEMCHR,REALLOCARRAY}

  # Debian has no archive of it. Mirrors may lack its source; what needs it says so.
  if folder=$(unpack_source n/nats.c/nats.c_3.4.1.orig.tar.gz a9b8a1509cbd5f4de27a0709fb61091e9118ee86ed76a69d983007bf62b13ccd); then
    compile_archive nats "$folder"/src/*.c "$folder"/src/unix/*.c -- -I"$folder/src" -I"$folder/src/include" -isystem "$portable_folder/usr/include" \
      -D_GNU_SOURCE -DLINUX -D_REENTRANT -DNATS_HAS_TLS -DNATS_USE_OPENSSL_1_1 -DNATS_FORCE_HOST_VERIFICATION
  else
    say "without a client of NATS: tidemark distributed of this build watches one machine only"
  fi

  # Functions of a newer glibc that the archives use, and symbols of the program that they expect to be in.
  compile_archive newer "$PWD"/cmake/portable/*.c
}

# check_symbols FILE: fails if FILE needs a newer glibc, or a shared library that is not part of it.
check_symbols() {
  local newest needed
  newest=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
  [[ $(printf '%s\n' "$newest" "$portable_glibc" | sort -V | tail -1) == "$portable_glibc" ]] || fail "$1 needs glibc $newest"
  needed=$(objdump -p "$1" | awk '/NEEDED/ { print $2 }' | grep -Ev '^(ld-linux.*|lib(c|m|dl|rt|pthread))\.so' || true)
  [[ -z $needed ]] || fail "$1 needs $needed"
}

gather_libraries
compile_libraries
mkdir -p build
cmake --preset portable >build/configure-portable.log 2>&1 || { cat build/configure-portable.log >&2 && exit 1; }
cmake --build --preset portable
for file in build/portable/bin/tidemark build/portable/lib/*.so build/portable/python/tidemark/*.so; do
  [[ ! -e $file ]] || check_symbols "$file"
done
