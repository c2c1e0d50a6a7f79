#include "collect/process/describe_lines.h"

#include "base/inductor_file.h"
#include "collect/process/definition_writer.h"

namespace tidemark::process {
namespace {

constexpr std::size_t kMaxTraceBytes = 4 << 20;  // of a file; the pool holds 16 MiB

std::size_t size_of(const PythonText& text) noexcept {
  return text.length * text.kind;
}

// The stack traces that have been sent, or the latest ones of them: those of a model's equal layers are the same.
class SentTraces {
 public:
  /// Its number; `*is_new`: it has to be sent.
  std::uint32_t number_of(const PythonText& trace, bool* is_new) noexcept {
    Slot& slot = slots_[slot_of(trace)];
    const PythonText& sent = slot.trace;
    *is_new = slot.number == 0 || sent.kind != trace.kind || sent.length != trace.length ||
              std::memcmp(sent.data, trace.data, size_of(trace)) != 0;
    if (*is_new) slot = {trace, ++count_};
    return slot.number;
  }

 private:
  struct Slot {
    PythonText trace;
    std::uint32_t number;
  };
  static constexpr std::size_t kSlots = 64;

  // By its end, where the innermost line stands.
  static std::size_t slot_of(const PythonText& trace) noexcept {
    const char* at = static_cast<const char*>(trace.data) + size_of(trace);
    std::size_t left = size_of(trace) / sizeof(std::uint64_t);
    if (left > 16) left = 16;
    std::uint64_t hash = trace.length;
    for (; left > 0; --left) {
      std::uint64_t word = 0;
      std::memcpy(&word, at -= sizeof(word), sizeof(word));
      hash = mix(hash, word);
    }
    return hash % kSlots;
  }

  Slot slots_[kSlots] = {};
  std::uint32_t count_ = 0;
};

void put_lines(DefinitionWriter* definition, const LineMap& map) noexcept {
  SentTraces sent;
  std::size_t trace_bytes = 0;
  for (std::size_t index = 0; index < map.size && trace_bytes < kMaxTraceBytes; ++index) {
    std::uint32_t line = 0;
    PythonText trace = {};
    bool is_new = false;
    const bool has_trace = python_line_map_entry(map, index, &line, &trace) && size_of(trace) <= kMaxTraceBytes;
    const std::uint32_t number = has_trace ? sent.number_of(trace, &is_new) : 0;
    definition->u32(line);
    definition->u32(number);
    if (!is_new) continue;
    definition->text(trace);
    trace_bytes += size_of(trace);
  }
}

// Of its name, which is a hash of its content. Never 0.
std::uint64_t key_of(const PythonText& file) noexcept {
  constexpr std::size_t kNameBytes = 55;
  std::uint64_t digits[2];
  std::memcpy(digits, static_cast<const char*>(file.data) + file.length - kNameBytes, sizeof(digits));
  return mix(digits[0], digits[1]) | 1;
}

}  // namespace

bool is_generated_file(const PythonText& file) noexcept {
  return file.kind == 1 && is_inductor_file(static_cast<const char*>(file.data), file.length);
}

bool describe_lines(ThreadState* thread, std::uintptr_t code) noexcept {
  PythonCode facts = {};
  LineMap map = {};
  if (!python_describe(code, &facts) || !is_generated_file(facts.file)) return false;
  const std::uint64_t key = key_of(facts.file);
  if (thread->line_maps.find(key) != thread->line_maps.kMissing) return true;
  if (!python_line_map(code, &map)) return false;
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::lines);
  definition.text(facts.file);
  put_lines(&definition, map);
  if (!definition.finish()) return false;
  if (!thread->line_maps.has_room()) thread->line_maps.clear(false);
  thread->line_maps.insert(key, 0);
  return true;
}

}  // namespace tidemark::process
