#include "collect/process/describe.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "collect/process/definition_writer.h"
#include "collect/process/describe_lines.h"
#include "collect/process/event_writer.h"
#include "collect/process/file_names.h"
#include "collect/ring/ranks.h"

namespace tidemark::process {
namespace {

// What ThreadState::codes says of a code object.
constexpr std::uint32_t kDescribed = 0;
constexpr std::uint32_t kAwaitsLines = 1;  // it is generated, and the lines it was made from could not be read yet

const char* reporting_library = "";
std::atomic<std::int32_t> sent_rank{-1};

}  // namespace

void set_reporting_library(const void* definition) noexcept {
  const int saved = errno;
  Dl_info info = {};
  if (::dladdr(definition, &info) != 0 && info.dli_fname != nullptr && reporting_library != info.dli_fname) {
    reporting_library = info.dli_fname;
    // Where other events came before, the recording goes on already.
    if (ThreadState* thread = current_thread(Start::no); thread != nullptr) {
      const detail::BusyLane busy(thread->writer.lane());
      if (busy.entered()) describe_process(thread);
    }
  }
  errno = saved;
}

void describe_process(ThreadState* thread) noexcept {
  const ring::Ranks ranks = ring::ranks_now();
  sent_rank.store(ranks.rank, std::memory_order_relaxed);
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::process);
  definition.u32(static_cast<std::uint32_t>(ranks.rank));
  definition.u32(static_cast<std::uint32_t>(ranks.local_rank));
  definition.u32(static_cast<std::uint32_t>(ranks.world_size));
  definition.text(python_version_text());
  definition.text(reporting_library);
  if (!definition.finish()) event_dropped(thread);
}

void describe_late_rank(ThreadState* thread) noexcept {
  if (sent_rank.load(std::memory_order_relaxed) < 0 && ring::ranks_now().rank >= 0) describe_process(thread);
}

bool describe_code(ThreadState* thread, std::uintptr_t code) noexcept {
  const std::uint32_t known = thread->codes.find(code);
  if (known == kAwaitsLines && describe_lines(thread, code)) thread->codes.replace(code, kDescribed);
  if (known != thread->codes.kMissing) return true;
  if (!thread->codes.has_room()) return false;
  python_watch(code);
  PythonCode facts = {};
  if (!python_describe(code, &facts)) facts = {{"?", 1, 1}, {"?", 1, 1}, 0, nullptr, 0, 0};
  if (session.attribute && facts.line_table != nullptr) python_find_modules(code, facts);
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::code);
  definition.u64(code);
  definition.u32(python_minor_version());
  definition.u32(facts.first_line);
  definition.u32(facts.code_offset);
  const char* const file_name = name_of_file(facts.file);
  definition.text(file_name != nullptr ? PythonText{file_name, ::strlen(file_name), 1} : facts.file);
  definition.text(facts.function);
  definition.text(facts.line_table, facts.line_table_size);
  if (!definition.finish()) return false;
  const bool generated = session.attribute && is_generated_file(facts.file);
  const bool awaits_lines = generated && !describe_lines(thread, code);
  thread->codes.insert(code, awaits_lines ? kAwaitsLines : kDescribed);
  return true;
}

bool describe_module(ThreadState* thread, std::uintptr_t return_address) noexcept {
  const std::uintptr_t pc = return_address - 1;  // in the call itself, which may be the last instruction of its module
  for (std::uint32_t index = 0; index < thread->module_count; ++index) {
    if (pc >= thread->modules[index].start && pc < thread->modules[index].end) return true;
  }
  NativeModule facts;
  constexpr std::size_t kMaxModules = sizeof(thread->modules) / sizeof(thread->modules[0]);
  if (thread->module_count == kMaxModules || !native_module_at(pc, &facts))
    return true;  // stays an address without a module
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::module);
  definition.u64(facts.start);
  definition.u64(facts.end);
  definition.u64(facts.load_address);
  definition.text(facts.path);
  definition.text(facts.build_id, facts.build_id_size);
  if (!definition.finish()) return false;
  thread->modules[thread->module_count++] = {facts.start, facts.end};
  return true;
}

void describe_loss(ThreadState* thread, QualityId kind, const char* detail) noexcept {
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::loss);
  definition.u32(static_cast<std::uint32_t>(kind));
  definition.text(detail);
  if (!definition.finish()) event_dropped(thread);
}

}  // namespace tidemark::process
