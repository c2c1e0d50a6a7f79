// A program of random allocations, for tests of windows: sent to several writers at once, so that a window can be
// compared with a recording of everything.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trace/recording_writer.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {

inline constexpr Device kProgramGpu{DeviceType::cuda, 0};

inline std::string text_of(const Recording& recording, StackId stack) {
  std::string text;
  const Definitions& definitions = recording.definitions;
  for (; stack.valid(); stack = definitions.stacks[stack.value].parent) {
    const Location& location = definitions.locations[definitions.stacks[stack.value].location.value];
    text += fmt::format("{}:{} ", definitions.strings[location.file.value], location.line);
    if (location.nn_module.valid()) {
      text += fmt::format("[{:x}] ", definitions.nn_modules[location.nn_module.value].address);
    }
  }
  return text;
}

inline std::string text_of(const Recording& recording, const Event& event) {
  const Definitions& definitions = recording.definitions;
  const std::string thread = event.thread.valid() ? definitions.threads[event.thread.value].name : "-";
  const std::string node =
      event.node.valid() ? definitions.strings[definitions.autograd_nodes[event.node.value].type.value] : "-";
  return fmt::format("{} t{} {} {:x} {} {} {} [{}] {} {} {}", static_cast<int>(event.kind), event.time_ns,
                     to_string(event.device), event.address, event.size, event.total_allocated, event.total_reserved,
                     text_of(recording, event.stack), thread, node, event.sequence);
}

/// A program that allocates and frees at random, sent to several writers at once.
class RandomProgram {
 public:
  RandomProgram(std::vector<RecordingWriter*> writers, std::uint64_t seed)
      : writers_(std::move(writers)), random_(seed) {
    for (RecordingWriter* writer : writers_) {
      const ThreadId thread = writer->thread({4711, "main"});
      const NnModuleId module = writer->nn_module({0xabc});
      writer->nn_module_name({module, module, writer->string(""), writer->string("Model")});
      threads_.push_back(thread);
      modules_.push_back(module);
    }
  }

  /// One event `step_ns` later, of one of `places` places.
  void step(std::uint64_t step_ns, std::uint32_t places) {
    now_ns_ += step_ns;
    const std::uint64_t address = 0x1000 * (1 + random_() % 300);
    const auto line = static_cast<std::uint32_t>(random_() % places);
    const bool frees = live_.contains(address);
    Event event;
    event.kind = frees ? EventKind::free : EventKind::allocate;
    event.time_ns = now_ns_;
    event.device = address % 3 == 0 ? Device{} : kProgramGpu;
    event.address = address;
    event.size = frees ? 0 : 512 * (1 + random_() % 100);
    if (frees) {
      allocated_ -= event.device == kProgramGpu ? live_[address] : 0;
      live_.erase(address);
    } else {
      allocated_ += event.device == kProgramGpu ? event.size : 0;
      live_[address] = event.size;
    }
    if (event.device == kProgramGpu) {
      event.has_totals = true;
      event.total_allocated = allocated_;
      event.total_reserved = reserved_ = std::max(reserved_, allocated_);
    }
    for (std::size_t index = 0; index < writers_.size(); ++index) {
      RecordingWriter& writer = *writers_[index];
      Event own = event;
      own.thread = threads_[index];
      if (!frees) {
        Location inner;
        inner.file = writer.string(fmt::format("file{}.py", line % 7));
        inner.line = line;
        Location outer = inner;
        outer.line = 1;
        outer.nn_module = modules_[index];
        own.stack = writer.stack(writer.stack({}, writer.location(outer)), writer.location(inner));
        own.sequence = line;
        if (line % 2 == 0) own.node = writer.autograd_node({writer.string("AddBackward0"), threads_[index]});
      }
      ASSERT_TRUE(writer.event(own).ok());
    }
  }

  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  [[nodiscard]] ThreadId thread(std::size_t writer) const { return threads_[writer]; }
  [[nodiscard]] NnModuleId module(std::size_t writer) const { return modules_[writer]; }

 private:
  std::vector<RecordingWriter*> writers_;
  std::vector<ThreadId> threads_;
  std::vector<NnModuleId> modules_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, std::uint64_t> live_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
};

/// Expected content of `recording`, a window of `full`.
inline void expect_window(const Recording& recording, const Recording& full) {
  ASSERT_EQ(recording.error, "");
  ASSERT_FALSE(recording.events.empty());
  std::vector<std::string> lead_in;
  std::vector<std::string> events;
  std::uint64_t begin_ns = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::resume) {
      begin_ns = event.time_ns;
    } else if (event.kind == EventKind::pause) {
      EXPECT_EQ(event.time_ns, 0U);
    } else if (begin_ns == 0) {
      Event plain = event;
      plain.total_allocated = plain.total_reserved = 0;
      lead_in.push_back(text_of(recording, plain));
    } else {
      events.push_back(text_of(recording, event));
    }
  }
  ASSERT_NE(begin_ns, 0U);
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> live;  // address → time, text
  std::vector<std::string> expected;
  for (const Event& event : full.events) {
    if (event.time_ns > begin_ns) {
      expected.push_back(text_of(full, event));
    } else if (event.kind == EventKind::allocate) {
      Event plain = event;
      plain.total_allocated = plain.total_reserved = 0;
      live[event.address] = {event.time_ns, text_of(full, plain)};
    } else {
      live.erase(event.address);
    }
  }
  std::map<std::uint64_t, std::string> by_time;
  for (const auto& [address, block] : live) by_time[block.first] = block.second;
  std::vector<std::string> expected_lead_in;
  for (const auto& [time, text] : by_time) expected_lead_in.push_back(text);
  EXPECT_EQ(lead_in, expected_lead_in);
  EXPECT_EQ(events, expected);
}

}  // namespace tidemark::testing
