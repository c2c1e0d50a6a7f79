#include "collect/process/mark.h"

#include <string.h>

#include "collect/process/definition_writer.h"
#include "collect/process/event_writer.h"

namespace tidemark::process {

void record_mark(ring::MarkKind kind, const char* name) noexcept {
  if (name == nullptr) return;
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::mark);
  definition.u32(static_cast<std::uint32_t>(kind));
  definition.u64(ticks(session.clock));
  definition.text(name, ::strnlen(name, ring::kMarkNameBytes));
  if (!definition.finish()) event_dropped(thread);
}

}  // namespace tidemark::process
