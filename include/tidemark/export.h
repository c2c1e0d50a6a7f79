/// @file
/// Macros that every header of the C++ API uses.
///
/// An inline namespace puts the version of the binary interface into the names of the library
/// (`tidemark::v1::Profiler`); programs write `tidemark::Profiler`.
#ifndef TIDEMARK_EXPORT_H
#define TIDEMARK_EXPORT_H

#if defined(__cplusplus) && __cplusplus < 201703L
#error "Tidemark's C++ API needs C++17 or newer; <tidemark/control.h> is for C and older C++"
#endif

/// Marks the exported symbols of libtidemark.so; all others are hidden.
#define TIDEMARK_API __attribute__((visibility("default")))

/// Empty inside the library, whose own code uses some of the same names for other things.
#ifdef TIDEMARK_BUILDS_LIBRARY
#define TIDEMARK_INLINE
#else
#define TIDEMARK_INLINE inline
#endif

#endif
