// What the preloaded library does when it is loaded and when the process ends, and the functions it offers the program.
#include <link.h>
#include <string.h>

#include "collect/process/connection.h"
#include "collect/process/hooks_torch.h"
#include "collect/process/recording.h"
#include "tidemark/control.h"

namespace tidemark::process {
namespace {

__attribute__((constructor)) void on_load() noexcept {
  configure_session();
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
  tidemark::process::record_moment(tidemark::ring::RecordKind::pause);
  tidemark::process::pause_session();
}

TIDEMARK_API void tidemark_resume(void) {
  tidemark::process::resume_session();
  tidemark::process::record_moment(tidemark::ring::RecordKind::resume);
}

TIDEMARK_API size_t tidemark_attach(void) {
  tidemark::process::configure_session();
  return tidemark::process::patch_torch_hooks();
}
