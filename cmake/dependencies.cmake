# Libraries of the distribution; docs/dependencies.md has the reason for each.
find_package(PkgConfig REQUIRED)
if(TIDEMARK_PORTABLE)  # with another C++ runtime than the distribution's libfmt
  find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_include_directories(fmt::fmt SYSTEM INTERFACE ${FMT_INCLUDE_DIR})
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
else()
  find_package(fmt REQUIRED)
endif()
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED liblz4)
pkg_check_modules(LZMA REQUIRED IMPORTED_TARGET liblzma)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(ELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(NCURSES REQUIRED ncursesw)
pkg_check_modules(SSL REQUIRED IMPORTED_TARGET openssl)

# Without the macros of its pkg-config file, which every compilation with glibc has anyway.
add_library(ncursesw INTERFACE IMPORTED)
target_link_libraries(ncursesw INTERFACE ${NCURSES_LINK_LIBRARIES})

# Its CMake package and pkg-config file do not name what the archive needs. The portable build may lack it
# (scripts/portable.sh).
find_library(TIDEMARK_NATS nats)
if(TIDEMARK_NATS)
  find_path(TIDEMARK_NATS_INCLUDE_DIR nats/nats.h REQUIRED)
  add_library(nats INTERFACE IMPORTED)
  target_include_directories(nats SYSTEM INTERFACE ${TIDEMARK_NATS_INCLUDE_DIR})
  target_link_libraries(nats INTERFACE ${TIDEMARK_NATS} PkgConfig::SSL)
elseif(NOT TIDEMARK_PORTABLE)
  message(FATAL_ERROR "nats.c is not installed (Debian: libnats-dev); scripts/setup.sh installs it")
endif()

# Only headers, without a CMake package.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_builder.hpp REQUIRED)
add_library(protozero::protozero INTERFACE IMPORTED)
target_include_directories(protozero::protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})

# For libraries loaded into programs with other versions of them: tidemark_static_zstd, tidemark_static_lz4.
foreach(name zstd lz4)
  string(TOUPPER ${name} prefix)
  find_library(TIDEMARK_STATIC_${prefix} lib${name}.a REQUIRED)
  add_library(tidemark_static_${name} UNKNOWN IMPORTED)
  set_target_properties(tidemark_static_${name} PROPERTIES
    IMPORTED_LOCATION ${TIDEMARK_STATIC_${prefix}} INTERFACE_INCLUDE_DIRECTORIES "${${prefix}_INCLUDE_DIRS}")
endforeach()
