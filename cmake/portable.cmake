# Toolchain of the build that runs on older distributions: zig's clang with glibc's interface of 2.28, with its own C++
# runtime linked in. scripts/portable.sh makes the folder TIDEMARK_PORTABLE_ROOT: bin/ has the compilers, usr/ the
# libraries of Debian as archives.
set(TIDEMARK_PORTABLE ON)
set(root $ENV{TIDEMARK_PORTABLE_ROOT})
if(NOT EXISTS ${root}/bin/clang++)
  message(FATAL_ERROR "TIDEMARK_PORTABLE_ROOT=${root} has no compiler: scripts/portable.sh makes it")
endif()
set(CMAKE_C_COMPILER ${root}/bin/clang)
set(CMAKE_CXX_COMPILER ${root}/bin/clang++)

set(CMAKE_FIND_ROOT_PATH ${root})
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
set(libraries ${root}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${root}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(PKG_CONFIG_ARGN --static)
file(GLOB Python3_INCLUDE_DIR ${root}/usr/include/python3*)  # any version: the modules use the limited API

# Unused sections are removed, which is half of the libraries.
set(CMAKE_C_FLAGS_INIT "-ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_INIT ${CMAKE_C_FLAGS_INIT})
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -Wl,--gc-sections)
endforeach()
# Functions of a newer glibc that the archives use.
set(CMAKE_C_STANDARD_LIBRARIES ${libraries}/libnewer.a)
set(CMAKE_CXX_STANDARD_LIBRARIES ${CMAKE_C_STANDARD_LIBRARIES})
