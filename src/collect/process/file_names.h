// Names under which recordings show Python source files that are no files, such as the cells of a notebook.
#pragma once

#include "collect/process/python/python_walker.h"

namespace tidemark::process {

/// Both are copied and kept for good. A path that was named before gets the new name. Any thread.
void name_file(const char* path, const char* name) noexcept;

/// The name of a path, or null.
const char* name_of_file(const PythonText& path) noexcept;

}  // namespace tidemark::process
