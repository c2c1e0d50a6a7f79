#include "collect/process/native/loaded_object.h"
#include "collect/process/native/rule_cache.h"
#include "collect/process/native/unwind_rule.h"
#include "collect/process/native/unwinder.h"
#include "collect/process/native/walk_memo.h"

namespace tidemark::process {
namespace {

constexpr std::uintptr_t kLowestCode = 4096;

constexpr std::uintptr_t kInRegister = 0;
constexpr std::uintptr_t kNowhere = 1;

struct Frame {
  std::uintptr_t pc;
  std::uintptr_t sp;
  std::uintptr_t fp;
  std::uintptr_t fp_place;  ///< where fp was read: an address of the stack, or one of the above
};

/// Records the inputs of a walk, if requested.
class Notes {
 public:
  explicit Notes(WalkRecord* record) : record_(record) {}

  void word(std::uintptr_t place, std::uintptr_t value) {
    if (record_ == nullptr) return;
    if (record_->word_count == WalkRecord::kMaxWords) return incomplete();
    record_->words[record_->word_count++] = {reinterpret_cast<const std::uintptr_t*>(place), value};
  }
  void frame_pointer(const Frame& frame) {
    if (frame.fp_place == kInRegister) {
      if (record_ != nullptr) record_->reads_fp = true;
    } else if (frame.fp_place != kNowhere) {
      word(frame.fp_place, frame.fp);
    }
  }
  void incomplete() {
    if (record_ != nullptr) record_->complete = false;
  }

 private:
  WalkRecord* record_;
};

/// Words of the stack from a frame's stack pointer up. Both bounds are multiples of the word size, and low < high.
class StackReader {
 public:
  StackReader(std::uintptr_t low, std::uintptr_t high) : low_(low), room_(high - low) {}

  [[nodiscard]] bool holds(std::uintptr_t address) const {
    return address % sizeof(std::uintptr_t) == 0 && address - low_ <= room_ - sizeof(std::uintptr_t);
  }

  /// `address` was accepted by holds(), so it is never null.
  static std::uintptr_t word(std::uintptr_t address) {
    return *reinterpret_cast<const std::uintptr_t*>(address);  // NOLINT(clang-analyzer-*Dereference)
  }

 private:
  std::uintptr_t low_;
  std::uintptr_t room_;
};

#if defined(__aarch64__)
constexpr unsigned kAddressBits = 48;
// Return addresses may be signed: the signature is in the bits above the address (pointer authentication).
std::uintptr_t code_address(std::uintptr_t word) {
  return word & ((std::uintptr_t{1} << kAddressBits) - 1);
}
#else
constexpr unsigned kAddressBits = RuleCache::kAddressBits;
std::uintptr_t code_address(std::uintptr_t word) {
  return word;
}
#endif

bool plausible_code(std::uintptr_t pc) {
  return pc >= kLowestCode && pc < std::uintptr_t{1} << kAddressBits;
}

/// Finds the caller by the frame pointer: the saved one is stored at it, the return address above.
bool step_by_frame_pointer(Frame& frame, const StackReader& stack) {
  if (!stack.holds(frame.fp) || !stack.holds(frame.fp + 8)) return false;
  frame = {code_address(StackReader::word(frame.fp + 8)), frame.fp + 16, StackReader::word(frame.fp), frame.fp};
  return plausible_code(frame.pc);
}

#if defined(__x86_64__)

constinit RuleCache cache;

[[gnu::noinline, gnu::cold]] std::uint32_t work_out_rule(std::uintptr_t pc) {
  UnwindRule rule{UnwindRule::Kind::frame_pointer_chain, UnwindRule::SavedFp::same, 0, 0};
  // The return address can be the first byte of the next function if the call does not return.
  LoadedObject object;
  if (find_loaded_object(pc - 1, &object)) {
    if (const auto* header = object.header(PT_GNU_EH_FRAME)) {
      const std::uintptr_t address = object.bias + header->p_vaddr;
      rule = unwind_rule_at(object.segment_at(address), address, pc - 1);
    }
  }
  const std::uint32_t packed = pack(rule);
  cache.insert(pc, packed);
  return packed;
}

std::uint32_t rule_for(std::uintptr_t pc) {
  const std::uint64_t rule = cache.find(pc);
  return __builtin_expect(rule != 0, 1) ? static_cast<std::uint32_t>(rule) : work_out_rule(pc);
}

/// Code without rules may use rbp for anything. The caller found by its frame pointer is accepted if it is in code with
/// rules, or the chain continues plausibly.
bool step_without_rule(Frame& frame, const StackReader& stack) {
  if (!step_by_frame_pointer(frame, stack)) return false;
  return unpack(rule_for(frame.pc)).kind != UnwindRule::Kind::frame_pointer_chain ||
         (frame.fp >= frame.sp && stack.holds(frame.fp));
}

bool step_over_signal(Frame& frame, const StackReader& stack) {
  const std::uintptr_t context = frame.sp;
  if (!stack.holds(context) || !stack.holds(context + kSignalFramePc)) return false;
  const Frame interrupted = {StackReader::word(context + kSignalFramePc) + 1,
                             StackReader::word(context + kSignalFrameSp), StackReader::word(context + kSignalFrameFp),
                             context + kSignalFrameFp};
  if (interrupted.sp <= frame.sp || !stack.holds(interrupted.sp)) return false;
  frame = interrupted;
  return plausible_code(frame.pc);
}

bool step(Frame& frame, const StackReader& stack, Notes& notes) {
  const UnwindRule rule = unpack(rule_for(frame.pc));
  const auto offset = static_cast<std::uintptr_t>(std::intptr_t{rule.cfa_offset});
  std::uintptr_t cfa = 0;
  switch (rule.kind) {
    case UnwindRule::Kind::sp_offset:
      cfa = frame.sp + offset;
      break;
    case UnwindRule::Kind::fp_offset:
      notes.frame_pointer(frame);
      cfa = frame.fp + offset;
      break;
    case UnwindRule::Kind::fp_indirect:
      notes.frame_pointer(frame);
      if (!stack.holds(frame.fp + offset)) return false;
      cfa = StackReader::word(frame.fp + offset);
      notes.word(frame.fp + offset, cfa);
      break;
    case UnwindRule::Kind::frame_pointer_chain:
      notes.incomplete();
      return step_without_rule(frame, stack);
    case UnwindRule::Kind::signal_frame:
      notes.incomplete();
      return step_over_signal(frame, stack);
    default:
      return false;
  }
  if (cfa <= frame.sp || !stack.holds(cfa - 8)) return false;
  std::uintptr_t fp = frame.fp;
  std::uintptr_t fp_place = frame.fp_place;
  if (rule.saved_fp != UnwindRule::SavedFp::same) {
    if (rule.saved_fp == UnwindRule::SavedFp::at_fp) notes.frame_pointer(frame);
    fp_place = (rule.saved_fp == UnwindRule::SavedFp::at_cfa ? cfa - std::uintptr_t{rule.fp_slot} * 8
                                                             : frame.fp + std::uintptr_t{rule.fp_slot} * 8);
    if (rule.saved_fp == UnwindRule::SavedFp::unknown) {
      fp = 0;
      fp_place = kNowhere;
    } else if (!stack.holds(fp_place)) {
      return false;
    } else {
      fp = StackReader::word(fp_place);
    }
  }
  frame = {StackReader::word(cfa - 8), cfa, fp, fp_place};
  notes.word(cfa - 8, frame.pc);
  return plausible_code(frame.pc);
}

#else

bool step(Frame& frame, const StackReader& stack, Notes& notes) {
  notes.incomplete();
  return step_by_frame_pointer(frame, stack);
}

#endif

}  // namespace

std::size_t native_walk(const NativeContext& context, StackBounds bounds, std::uintptr_t stop_low,
                        std::uintptr_t stop_high, std::uintptr_t* pcs, std::size_t capacity, bool* truncated,
                        WalkRecord* record) noexcept {
  *truncated = false;
  Frame frame{code_address(context.pc), context.sp, context.fp, kInRegister};
  const std::uintptr_t high = bounds.high & ~(sizeof(std::uintptr_t) - 1);
  const bool on_stack =
      frame.sp >= bounds.low && frame.sp < high && frame.sp % sizeof(std::uintptr_t) == 0 && plausible_code(frame.pc);
  if (record != nullptr) {
    record->context = context;
    record->stop_low = stop_low;
    record->word_count = 0;
    record->reads_fp = false;
    record->complete = on_stack;
  }
  Notes notes(record);
  std::size_t count = 0;
  while (frame.pc - stop_low >= stop_high - stop_low) {
    if (count == capacity) {
      *truncated = true;
      break;
    }
    pcs[count++] = frame.pc;
    // Frames lie at increasing addresses: each may read only above its own stack pointer.
    if (!on_stack || frame.sp >= high || !step(frame, StackReader(frame.sp, high), notes)) break;
  }
  if (record != nullptr) {
    record->frames = static_cast<std::uint32_t>(count);
    record->truncated = *truncated;
  }
  return count;
}

void native_forget() noexcept {
#if defined(__x86_64__)
  cache.clear();
#endif
}

}  // namespace tidemark::process
