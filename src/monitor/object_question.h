// Requests to a recorded Python program for its new storages and the references to them, which the program answers
// itself (collect/ring/layout.h; see python/tidemark/_holders/_answer.py).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// A storage that did not exist at the program's first request.
struct HeldStorage {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::string device;               ///< "cuda:0"
  std::string kind;                 ///< of its owner: "tensor", "saved tensor"; empty: it has no owner any more
  std::string type;                 ///< of its owner: "Tensor", "Parameter"
  std::vector<std::string> chains;  ///< from a root, shortest first: "__main__.losses[12].grad_fn"
  bool native = false;              ///< no object refers to it: native code holds it, or a temporary
};

struct ObjectAnswer {
  std::uint64_t new_storages = 0;
  std::uint64_t new_bytes = 0;
  std::vector<HeldStorage> storages;            ///< some of them
  std::vector<std::string> notes;               ///< information that the program could not determine; sentences
  double seconds = 0;                           ///< for which the program was stopped
  std::optional<double> stopped_after_seconds;  ///< some chains were not searched after this time
  std::uint64_t answered_wall_ns = 0;           ///< when it was read, since 1970
  std::string
      older_because;  ///< why there is no later answer, at the end of watching: a clause; empty: this is the last
};

/// A program's answers are hostile input: parse_object_answer() bounds them. std::nullopt if the text is not an answer
/// to "again".
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;
[[nodiscard]] std::optional<ObjectAnswer> parse_object_answer(std::string_view json);

/// Why a program has not answered.
inline constexpr const char* kNoAnswer =
    "the program did not answer: a Python program does so on its main thread once it has allocated again; this one is "
    "not in Python, has allocated nothing, or its main thread has stayed in one long call";

/// The same, for a program that has ended meanwhile.
inline constexpr const char* kEndedBeforeAsked = "the program ended before it was asked";
inline constexpr const char* kEndedBeforeAskedAgain = "the program ended before the next query";
inline constexpr const char* kEndedBeforeAnswer =
    "the program ended before it answered: a Python program does so on its main thread once it has allocated again";

/// Sends requests to one program. Remaining files are removed at the end. Not thread-safe; no call waits.
class ObjectQuestion {
 public:
  /// `folder`: the folder of the program's recorder.
  ObjectQuestion(const std::string& folder, pid_t pid);
  ~ObjectQuestion();
  ObjectQuestion(const ObjectQuestion&) = delete;
  ObjectQuestion& operator=(const ObjectQuestion&) = delete;

  /// "first": all current storages are old; "again": report new ones.
  void ask(bool first);
  /// Whether the program has answered the latest request.
  [[nodiscard]] bool is_answered();
  /// The answer to "again"; an error, as a sentence, if there is none.
  [[nodiscard]] Result<ObjectAnswer> answer() const;

 private:
  std::string stem_;
  std::optional<std::string> answer_;
  bool asked_ = false;
};

/// Schedules the requests to one program while it is watched: "first" at once, and "again" now and then, so that there
/// is an answer also for a program that ends by itself. The first pause is 1 s and each one twice as long, up to a
/// minute, and at least 50 times as long as the latest answer stopped the program. Not thread-safe; no call waits.
class ObjectQuestions {
 public:
  using Clock = std::chrono::steady_clock;

  ObjectQuestions(const std::string& folder, pid_t pid);

  /// Takes a new answer. True if the next request is due, which ask() sends.
  bool update(Clock::time_point now);
  /// Sends "again", unless the previous request is unanswered.
  void ask();
  /// Whether the first request was answered and another one is pending.
  [[nodiscard]] bool is_awaited() const { return has_begun_ && waits_; }
  /// The latest answer. `runs`: whether the program is running. The error is a clause.
  [[nodiscard]] Result<ObjectAnswer> latest(bool runs) const;

 private:
  static constexpr std::chrono::seconds kFirstPause{1};
  static constexpr std::chrono::seconds kLongestPause{60};
  static constexpr double kPauseForEachSecond = 50;

  ObjectQuestion question_;
  bool waits_ = true;
  bool has_begun_ = false;  // the first request was answered
  std::optional<Clock::time_point> next_;
  std::chrono::seconds pause_ = kFirstPause;
  std::optional<ObjectAnswer> latest_;
  std::string problem_;  // with the latest answer
};

}  // namespace tidemark
