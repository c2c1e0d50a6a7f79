// The stream of a job's events on a NATS server with JetStream, and the one durable consumer of it: the coordinator.
//
// Only the coordinator asks the server for them, through JetStream's own protocol ($JS.API subjects, JSON), so that
// nothing waits for the server and agents need no stream of their own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark {

/// One thread at a time.
class EventStream {
 public:
  using Clock = std::chrono::steady_clock;
  /// Of the stream: older or further events are removed. Within the second one, a repeated event is not stored again.
  static constexpr std::chrono::hours kMaxAge{7 * 24};
  static constexpr std::chrono::minutes kDuplicates{10};
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  explicit EventStream(std::string job) : job_(std::move(job)) {}

  struct Request {
    std::string subject;
    std::string bytes;
    std::string reply;
  };
  /// What the server is to be asked now; std::nullopt: nothing. Asks again after each new connection, because the
  /// server may have lost its files.
  [[nodiscard]] std::optional<Request> next(bool is_connected, Clock::time_point now);
  /// An answer of the server, to this reply subject.
  void take_answer(std::string_view reply, std::string_view answer);

  /// For the subscription to answers.
  [[nodiscard]] std::string reply_subjects() const;
  [[nodiscard]] bool is_ready() const { return state_ == State::ready; }
  /// Why events do not come, as a clause; empty: they do, or it is not known yet.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  enum class State : std::uint8_t { no_stream, no_consumer, ready };
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string reply(std::string_view of) const;

  std::string job_;
  State state_ = State::no_stream;
  bool was_connected_ = false;
  std::optional<Clock::time_point> asked_;
  std::string problem_;
};

}  // namespace tidemark
