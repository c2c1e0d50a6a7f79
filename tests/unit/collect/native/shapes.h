// Functions with frames of many kinds, each compiled in several ways (see CMakeLists.txt).
#pragma once

#include <vector>

namespace tidemark::process {

using Visit = void (*)(void* argument);

/// Calls `visit` from inside its own frame, in the situation given by its name.
struct Shape {
  const char* name;
  void (*run)(Visit visit, void* argument);
};

struct Shapes {
  const char* way;
  const Shape* begin;
  const Shape* end;
};

Shapes shapes_O0();
Shapes shapes_O2();
Shapes shapes_O2_frame_pointers();
Shapes shapes_O3_realigned();

inline std::vector<Shapes> all_shapes() {
  return {shapes_O0(), shapes_O2(), shapes_O2_frame_pointers(), shapes_O3_realigned()};
}

}  // namespace tidemark::process
