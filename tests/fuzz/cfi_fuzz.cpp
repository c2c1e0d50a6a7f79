// Any bytes as .eh_frame_hdr and .eh_frame: the unwinder must read nothing outside them and terminate.
//
// Input: 8 bytes of a target address, then the section. Random mutations rarely produce valid tables, so the bytes are
// also run as call frame instructions and as an expression.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "collect/process/native/call_frame.h"
#include "collect/process/native/expression.h"
#include "collect/process/native/unwind_rule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark::process;
  constexpr std::uint64_t kAddress = 0x10000;
  std::uint64_t pc = 0;
  if (size < sizeof pc) return 0;
  std::memcpy(&pc, data, sizeof pc);
  const Segment segment = {reinterpret_cast<const std::byte*>(data) + sizeof pc, size - sizeof pc, kAddress};

  const UnwindRule rule = unwind_rule_at(segment, kAddress, pc);
  if (unpack(pack(rule)) != rule) std::abort();

  FrameDescription frame;
  frame.pc_begin = pc - pc % 256;
  frame.pc_end = frame.pc_begin + 256;
  frame.data_alignment = -8;
  frame.return_address_register = kReturnAddressRegister;
  frame.cie_instructions = {0, segment.size / 2};
  frame.fde_instructions = {segment.size / 2, segment.size};
  FrameRules rules;
  if (frame_rules_at(segment, frame, pc, &rules)) {
    const UnwindRule from_instructions = unwind_rule(segment, rules, pc % 2 == 0, pc);
    if (unpack(pack(from_instructions)) != from_instructions) std::abort();
  }
  SymbolicValue value;
  evaluate_expression(segment, {0, segment.size}, pc, &value);
  return 0;
}
