// Times relative to the beginning of a window of a longer recording. Such a window begins with the blocks that were
// alive then (LiveBlocks::lead_in), which exist before its first event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/sample.h"

namespace tidemark {

/// Takes the events of a recording in order. Not thread-safe.
class WindowTime {
 public:
  /// Consumes an event if it belongs to the initial blocks of a window.
  template <typename Consumer>
  bool take_lead_in(const Event& event, Consumer& consumer) {
    if (state_ == State::before) {
      const bool leads_in = event.kind == EventKind::pause && event.time_ns == 0 && !event.thread.valid();
      state_ = leads_in ? State::lead_in : State::behind;
      return leads_in;
    }
    if (state_ == State::behind) return false;
    if (event.kind == EventKind::resume) {
      state_ = State::behind;
      began_ns_ = event.time_ns;
      consumer.begin();
    } else {
      Event there = event;
      there.time_ns = 0;
      consumer.add(there);
    }
    return true;
  }
  [[nodiscard]] std::optional<std::uint64_t> began_ns() const { return began_ns_; }

  void shift(std::uint64_t& time_ns) const { time_ns -= std::min(time_ns, began_ns_.value_or(0)); }
  void shift(SampleRecord& record) const {
    std::visit(
        [this](auto& fields) {
          if constexpr (requires { fields.time_ns; }) shift(fields.time_ns);
        },
        record);
  }
  void shift(Definitions& definitions) const {
    if (!began_ns_) return;
    for (Mark& mark : definitions.marks) shift(mark.time_ns);
    for (ModelTensor& tensor : definitions.tensors) shift(tensor.time_ns);
    if (definitions.end) shift(definitions.end->time_ns);
    if (definitions.process.start_wall_ns) *definitions.process.start_wall_ns += *began_ns_;
  }

 private:
  enum class State : std::uint8_t { before, lead_in, behind };

  State state_ = State::before;
  std::optional<std::uint64_t> began_ns_;
};

}  // namespace tidemark
