#include "collect/process/python/line_map.h"

#include "collect/process/python/describe.h"

namespace tidemark::process {
namespace {

bool holds_gil(const Interpreter& interpreter) noexcept {
  void* own = interpreter.this_thread_state();
  return own != nullptr && interpreter.current_thread_state() == own && interpreter.is_finalizing() == 0;
}

// PyCodeCache.linemaps; a new reference, or null.
void* line_maps(const ObjectFunctions& python) noexcept {
  void* modules = python.modules();
  void* module = modules == nullptr ? nullptr : python.dict_item_string(modules, "torch._inductor.codecache");
  void* names = module == nullptr ? nullptr : python.module_dict(module);
  void* cache = names == nullptr ? nullptr : python.dict_item_string(names, "PyCodeCache");
  return cache == nullptr ? nullptr : python.attribute(cache, "linemaps");
}

bool read_entry(const ObjectFunctions& python, void* entry, LineMap* out) noexcept {
  if (entry == nullptr || python.list_size(entry) != 2) return false;  // kernels have no lines of their own
  out->lines = python.list_item(entry, 0);
  out->traces = python.list_item(entry, 1);
  const std::ptrdiff_t size = python.tuple_size(out->lines);
  if (size <= 0 || python.tuple_size(out->traces) != size) return false;
  out->size = static_cast<std::size_t>(size);
  return true;
}

}  // namespace

bool find_line_map(const Layout& layout, const Interpreter& interpreter, std::uintptr_t code, LineMap* out) noexcept {
  const ObjectFunctions& python = interpreter.objects;
  if (!python.complete || !holds_gil(interpreter) || python.error() != nullptr) return false;
  bool found = false;
  if (void* maps = line_maps(python); maps != nullptr) {
    void* file = reinterpret_cast<void*>(load<std::uintptr_t>(code + layout.code_file));
    found = read_entry(python, python.dict_item(maps, file), out);
    python.release(maps);  // the class keeps it
  }
  python.clear_error();
  return found;
}

bool read_line_map(const Layout& layout, const Interpreter& interpreter, const LineMap& map, std::size_t index,
                   std::uint32_t* line, PythonText* trace) noexcept {
  const ObjectFunctions& python = interpreter.objects;
  const auto at = static_cast<std::ptrdiff_t>(index);
  void* number = python.tuple_item(map.lines, at);
  if (!has_type_flag(reinterpret_cast<std::uintptr_t>(number), kLongSubclassFlag)) return false;
  *line = static_cast<std::uint32_t>(python.as_long(number));
  return read_text(layout, reinterpret_cast<std::uintptr_t>(python.tuple_item(map.traces, at)), trace);
}

}  // namespace tidemark::process
