// The functions of tidemark/control.h as pointers. Needs no runtime: the preloaded library includes it too.
#pragma once

#include <cstddef>

namespace tidemark {

/// The control functions of one library. The names without "tidemark_".
struct ControlFunctions {
  void (*pause)();
  void (*resume)();
  void (*mark)(const char*);
  void (*range_begin)(const char*);
  void (*range_end)(const char*);
  std::size_t (*attach)();
  int (*connect)(const char* const*);
  int (*disconnect)();
  int (*is_recording)();
  void (*name_file)(const char*, const char*);
  void (*answer)();
};

/// Sets all of them to the results of `definition_of(name)`, a void*. False if one is null.
template <typename Lookup>
bool find_control_functions(Lookup definition_of, ControlFunctions* functions) {
  const auto find = [&]<typename Function>(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(definition_of(name));
    return *function != nullptr;
  };
  return find("tidemark_pause", &functions->pause) && find("tidemark_resume", &functions->resume) &&
         find("tidemark_mark", &functions->mark) && find("tidemark_range_begin", &functions->range_begin) &&
         find("tidemark_range_end", &functions->range_end) && find("tidemark_attach", &functions->attach) &&
         find("tidemark_connect", &functions->connect) && find("tidemark_disconnect", &functions->disconnect) &&
         find("tidemark_is_recording", &functions->is_recording) && find("tidemark_name_file", &functions->name_file) &&
         find("tidemark_answer", &functions->answer);
}

}  // namespace tidemark
