// What the preloaded library does when it is loaded and when the process ends, and the functions it offers the program.
#include <link.h>
#include <string.h>

#include "collect/process/connection.h"
#include "collect/process/driver/subscription.h"
#include "collect/process/elf_dynamic.h"
#include "collect/process/hooks_autograd.h"
#include "collect/process/hooks_torch.h"
#include "collect/process/mark.h"
#include "collect/process/recording.h"
#include "tidemark/control.h"

/// What another preloaded library defines where it wants to know of the program's marks, as the phantom GPU does; kinds
/// are those of ring::MarkKind. Null where none does.
extern "C" void tidemark_on_mark(int kind, const char* name) __attribute__((weak));

namespace tidemark::process {
namespace {

// Several copies of this library may be loaded, say one preloaded and one by a package that brings its own. The first
// in the loader's order records; the others stay idle and pass calls on to it.
struct Copy {
  void (*pause)();
  void (*resume)();
  void (*mark)(const char*);
  void (*range_begin)(const char*);
  void (*range_end)(const char*);
  std::size_t (*attach)();
};
Copy first = {};  // null functions: this copy is the first

int find_first_copy(dl_phdr_info* info, std::size_t /*size*/, void* /*data*/) noexcept {
  DynamicObject object;
  if (!read_dynamic_object(*info, &object)) return 0;
  if (object.contains(&first)) return 1;
  const Copy found = {reinterpret_cast<void (*)()>(find_definition(object, "tidemark_pause")),
                      reinterpret_cast<void (*)()>(find_definition(object, "tidemark_resume")),
                      reinterpret_cast<void (*)(const char*)>(find_definition(object, "tidemark_mark")),
                      reinterpret_cast<void (*)(const char*)>(find_definition(object, "tidemark_range_begin")),
                      reinterpret_cast<void (*)(const char*)>(find_definition(object, "tidemark_range_end")),
                      reinterpret_cast<std::size_t (*)()>(find_definition(object, "tidemark_attach"))};
  if (found.pause == nullptr || found.resume == nullptr || found.mark == nullptr || found.range_begin == nullptr ||
      found.range_end == nullptr || found.attach == nullptr) {
    return 0;
  }
  first = found;
  return 1;
}

__attribute__((constructor)) void on_load() noexcept {
  ::dl_iterate_phdr(find_first_copy, nullptr);
  if (first.attach == nullptr) configure_session();
}

void mark(ring::MarkKind kind, const char* name) noexcept {
  record_mark(kind, name);
  if (tidemark_on_mark != nullptr && name != nullptr) tidemark_on_mark(static_cast<int>(kind), name);
}

int is_torch(dl_phdr_info* info, std::size_t /*size*/, void* /*data*/) noexcept {
  return ::strstr(info->dlpi_name, "libc10") != nullptr ? 1 : 0;
}

// So that `tidemark run` can say why nothing was recorded.
__attribute__((destructor)) void on_unload() noexcept {
  if (session.shared != nullptr || !connection_configured()) return;
  leave_mark(::dl_iterate_phdr(is_torch, nullptr) != 0 ? Mark::torch_seen : Mark::no_torch);
}

}  // namespace
}  // namespace tidemark::process

#define TIDEMARK_API extern "C" __attribute__((visibility("default"), used))

TIDEMARK_API void tidemark_pause(void) {
  if (tidemark::process::first.pause != nullptr) return tidemark::process::first.pause();
  tidemark::process::record_moment(tidemark::ring::RecordKind::pause);
  tidemark::process::pause_session();
  tidemark::process::cuda::enable_calls(false);
}

TIDEMARK_API void tidemark_resume(void) {
  if (tidemark::process::first.resume != nullptr) return tidemark::process::first.resume();
  tidemark::process::resume_session();
  tidemark::process::cuda::enable_calls(true);
  tidemark::process::record_moment(tidemark::ring::RecordKind::resume);
}

TIDEMARK_API void tidemark_mark(const char* name) {
  if (tidemark::process::first.mark != nullptr) return tidemark::process::first.mark(name);
  tidemark::process::mark(tidemark::ring::MarkKind::point, name);
}

TIDEMARK_API void tidemark_range_begin(const char* name) {
  if (tidemark::process::first.range_begin != nullptr) return tidemark::process::first.range_begin(name);
  tidemark::process::mark(tidemark::ring::MarkKind::range_begin, name);
}

TIDEMARK_API void tidemark_range_end(const char* name) {
  if (tidemark::process::first.range_end != nullptr) return tidemark::process::first.range_end(name);
  tidemark::process::mark(tidemark::ring::MarkKind::range_end, name);
}

TIDEMARK_API size_t tidemark_attach(void) {
  if (tidemark::process::first.attach != nullptr) return tidemark::process::first.attach();
  tidemark::process::configure_session();
  return tidemark::process::patch_torch_hooks() + tidemark::process::patch_autograd_hook();
}
