// Events of a job's nodes on their way to the coordinator: published to a stream of the server, which stores them until
// the coordinator has taken them.
//
//   tidemark.JOB.event.NODE           an EventMessage, stored by the stream
//   tidemark.JOB.stored.NODE.ID       the server's answer to the agent: it is stored
//   tidemark.JOB.deliver              from the stream to the coordinator
//
// An event may come more than once: instance and number tell.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "cluster/job_report.h"

namespace tidemark {

struct EventMessage {
  static constexpr std::size_t kMaxBytes = 4096;

  std::uint64_t instance = 0;  ///< of one start of an agent, as AgentMessage::instance; never 0
  std::uint64_t number = 0;    ///< of the agent's event, from 1
  JobEvent event;

  /// For BusExtras::id.
  [[nodiscard]] std::string id() const;
  bool operator==(const EventMessage&) const = default;
};

[[nodiscard]] std::string encode(const EventMessage& message);
/// Hostile input, as decode_event().
[[nodiscard]] Result<EventMessage> decode_event_message(std::string_view bytes);

[[nodiscard]] std::string event_subject(std::string_view job, std::string_view node);
[[nodiscard]] std::string all_events_subject(std::string_view job);
/// `id`: EventMessage::id(), or "*".
[[nodiscard]] std::string stored_subject(std::string_view job, std::string_view node, std::string_view id);
[[nodiscard]] std::string deliver_subject(std::string_view job);

/// An agent's events until the stream has stored them. One thread at a time.
class EventOutbox {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxWaiting = 1024;  ///< further ones replace the oldest
  static constexpr std::size_t kMaxAtOnce = 64;     ///< without an answer
  static constexpr std::chrono::seconds kSendAgain{3};

  explicit EventOutbox(std::uint64_t instance) : instance_(instance) {}

  /// From now on, events also wait in this file, so that the next agent sends what this one could not, if it is killed.
  /// Takes those of the agent before. The error names the file: then they wait in memory alone.
  Result<void> keep_in(const std::string& path);

  void add(JobEvent event);
  /// The next one to be published now; std::nullopt: none. Each comes again after kSendAgain, unless it is stored.
  [[nodiscard]] std::optional<EventMessage> next(Clock::time_point now);
  /// The server's answer to an event. It is kept if the answer is an error, or none of the server's.
  void take_answer(std::string_view id, std::string_view answer);
  /// The event has arrived.
  void remove(std::string_view id);

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  struct Waiting {
    EventMessage message;
    std::optional<Clock::time_point> sent = {};
  };

  void write_file();
  void append(const EventMessage& message);

  std::uint64_t instance_;
  std::uint64_t number_ = 0;
  std::deque<Waiting> waiting_;
  ScopedFd file_;
  std::size_t file_bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace tidemark
