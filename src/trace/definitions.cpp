#include "trace/definitions.h"

#include <array>

namespace tidemark {
namespace {

struct LossFacts {
  const char* name;
  const char* severity;
};

// Indexed by Loss::Kind.
constexpr std::array<LossFacts, 15> kLossFacts = {{{"ring_full", "error"},
                                                   {"reentrant", "warning"},
                                                   {"thread_limit", "error"},
                                                   {"disk", "error"},
                                                   {"size_limit", "warning"},
                                                   {"python_unsupported", "warning"},
                                                   {"native_unsupported", "warning"},
                                                   {"stack_truncated", "info"},
                                                   {"recorder_gone", "error"},
                                                   {"unknown_record", "warning"},
                                                   {"torn_tail", "warning"},
                                                   {"protocol", "error"},
                                                   {"device_lost", "warning"},
                                                   {"driver_off", "warning"},
                                                   {"driver_frees", "info"}}};

constexpr LossFacts kUnknownLoss = {"unknown_loss", "warning"};

const LossFacts& facts(Loss::Kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < kLossFacts.size() ? kLossFacts[index] : kUnknownLoss;
}

}  // namespace

const char* severity(Loss::Kind kind) {
  return facts(kind).severity;
}
const char* name(Loss::Kind kind) {
  return facts(kind).name;
}

}  // namespace tidemark
