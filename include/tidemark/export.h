/// @file
/// What every header of the C++ API begins with.
///
/// The library's names have the version of its binary interface in them (`tidemark::v1::Profiler`), as an inline
/// namespace: programs write `tidemark::Profiler`.
#ifndef TIDEMARK_EXPORT_H
#define TIDEMARK_EXPORT_H

#if defined(__cplusplus) && __cplusplus < 201703L
#error "Tidemark's C++ API needs C++17 or newer; <tidemark/control.h> is for C and older C++"
#endif

/// What libtidemark.so offers; everything else in it is hidden.
#define TIDEMARK_API __attribute__((visibility("default")))

/// Empty inside the library, whose own code has other things under some of the same names.
#ifdef TIDEMARK_BUILDS_LIBRARY
#define TIDEMARK_INLINE
#else
#define TIDEMARK_INLINE inline
#endif

#endif
