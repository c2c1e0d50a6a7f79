// A function that a loaded library defines, replaced for whoever looks it up from now on.
#pragma once

namespace tidemark::process {

/// Points `symbol`, as the library that contains `inside` defines it, at `replacement` in that library's symbol table:
/// dlsym() with its handle and the loader find the replacement. Whoever has looked the function up before keeps it.
/// Gives the function in `*original`, before anybody can find the replacement. False, and nothing has changed, when the
/// library does not define it, or it was done before, or its pages cannot be written. Atomic for threads that look it
/// up meanwhile; holds the loader's lock, allocates nothing.
bool redirect_definition(const void* inside, const char* symbol, void* replacement, void** original) noexcept;

}  // namespace tidemark::process
