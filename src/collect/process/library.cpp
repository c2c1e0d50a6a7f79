// Loading and unloading of the preloaded library, and the functions it offers the program.
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/control_functions.h"
#include "collect/process/connection.h"
#include "collect/process/driver/allocator_calls.h"
#include "collect/process/driver/subscription.h"
#include "collect/process/elf_dynamic.h"
#include "collect/process/event_writer.h"
#include "collect/process/filtered.h"
#include "collect/process/hooks_torch.h"
#include "collect/process/script/objects_script.h"
#include "collect/process/stack_capture.h"
#include "tidemark/control.h"

/// Another preloaded library, such as the phantom GPU, may define this to receive the program's marks; `kind` is a
/// ring::MarkKind. Null if none does.
extern "C" void tidemark_on_mark(int kind, const char* name) __attribute__((weak));

namespace tidemark::process {
namespace {

// Several copies of this library may be loaded, for example one preloaded and one from a package. The first in the
// loader's order records; the others are idle and pass calls on to it.
ControlFunctions first = {};  // null: this copy is the first

int find_first_copy(dl_phdr_info* info, std::size_t /*size*/, void* /*data*/) noexcept {
  DynamicObject object;
  if (!read_dynamic_object(*info, &object)) return 0;
  if (object.contains(&first)) return 1;
  ControlFunctions found = {};
  if (!find_control_functions([&](const char* name) { return find_definition(object, name); }, &found)) return 0;
  first = found;
  return 1;
}

__attribute__((constructor)) void on_load() noexcept {
  ::dl_iterate_phdr(find_first_copy, nullptr);
  if (first.attach == nullptr) configure_session(environ);
}

void mark(ring::MarkKind kind, const char* name) noexcept {
  record_mark(kind, name);
  if (tidemark_on_mark != nullptr && name != nullptr) tidemark_on_mark(static_cast<int>(kind), name);
}

std::size_t patch_hooks() noexcept {
  patch_allocator_calls();
  return patch_torch_hooks() + patch_autograd_hook();
}

void record_loss(QualityId loss) noexcept {
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (busy.entered()) describe_loss(thread, loss, "");
}

int is_torch(dl_phdr_info* info, std::size_t /*size*/, void* /*data*/) noexcept {
  return ::strstr(info->dlpi_name, "libc10") != nullptr ? 1 : 0;
}

// Lets `tidemark run` print why nothing was recorded.
__attribute__((destructor)) void on_unload() noexcept {
  if (session.shared != nullptr || !connection_configured() || filtered()) return;
  report_unrecorded(::dl_iterate_phdr(is_torch, nullptr) != 0 ? Unrecorded::torch_seen : Unrecorded::no_torch);
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
  if (!tidemark::process::session_is_on()) tidemark::process::configure_session(environ);
  return tidemark::process::patch_hooks();
}

TIDEMARK_API int tidemark_connect(const char* const* settings) {
  if (tidemark::process::first.connect != nullptr) return tidemark::process::first.connect(settings);
  if (!tidemark::process::start_session(settings)) return 0;
  // If no slot is patched yet, PyTorch is not loaded, and nothing has been missed.
  if (tidemark::process::patch_hooks() > 0) tidemark::process::record_loss(tidemark::QualityId::started_inside);
  return 1;
}

TIDEMARK_API int tidemark_disconnect(void) {
  if (tidemark::process::first.disconnect != nullptr) return tidemark::process::first.disconnect();
  return tidemark::process::end_session() ? 1 : 0;
}

TIDEMARK_API int tidemark_is_recording(void) {
  if (tidemark::process::first.is_recording != nullptr) return tidemark::process::first.is_recording();
  return tidemark::process::session_is_on() ? 1 : 0;
}

TIDEMARK_API void tidemark_answer(void) {
  if (tidemark::process::first.answer != nullptr) return tidemark::process::first.answer();
  tidemark::process::answer_now();
}

TIDEMARK_API void tidemark_name_file(const char* path, const char* name) {
  if (tidemark::process::first.name_file != nullptr) return tidemark::process::first.name_file(path, name);
  tidemark::process::name_file(path, name);
}
