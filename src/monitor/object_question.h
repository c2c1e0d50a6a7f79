// Which storages of a recorded Python program are new, and what refers to them: a question that the program answers
// itself (collect/ring/layout.h; python/tidemark/_holders/_answer.py says how).
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

/// A storage that was not there when the program was asked first.
struct HeldStorage {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::string device;               ///< "cuda:0"
  std::string kind;                 ///< of its owner: "tensor", "saved tensor"; empty: nobody owns it any more
  std::string type;                 ///< likewise: "Tensor", "Parameter"
  std::vector<std::string> chains;  ///< from a root, shortest first: "__main__.losses[12].grad_fn"
  bool native = false;              ///< no object refers to it: native code holds it, or a temporary
};

struct ObjectAnswer {
  std::uint64_t new_storages = 0;
  std::uint64_t new_bytes = 0;
  std::vector<HeldStorage> storages;            ///< some of them
  std::vector<std::string> notes;               ///< what the program could not find out; sentences
  double seconds = 0;                           ///< for which the program was held up
  std::optional<double> stopped_after_seconds;  ///< some chains were not looked for, because that took so long
  std::uint64_t answered_wall_ns = 0;           ///< when it was read, since 1970
  std::string
      older_because;  ///< why there is no later answer, of the end of watching: a clause; empty: it is of the end
};

/// The answers of a program are hostile input: parse_object_answer() bounds them. None for what is no answer to
/// "again".
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;
[[nodiscard]] std::optional<ObjectAnswer> parse_object_answer(std::string_view json);

/// Why a program has not answered.
inline constexpr const char* kNoAnswer =
    "the program did not answer: a Python program does so on its main thread once it has allocated again; this one is "
    "not in Python, has allocated nothing, or its main thread has stayed in one long call";

/// Likewise, of one that has ended meanwhile.
inline constexpr const char* kEndedBeforeAsked = "the program ended before it was asked";
inline constexpr const char* kEndedBeforeAskedAgain = "the program ended before the next query";
inline constexpr const char* kEndedBeforeAnswer =
    "the program ended before it answered: a Python program does so on its main thread once it has allocated again";

/// To one program. Files that nobody took away are removed at the end. Not thread-safe; no call waits.
class ObjectQuestion {
 public:
  /// `folder`: of the program's recorder.
  ObjectQuestion(const std::string& folder, pid_t pid);
  ~ObjectQuestion();
  ObjectQuestion(const ObjectQuestion&) = delete;
  ObjectQuestion& operator=(const ObjectQuestion&) = delete;

  /// "first": what is there now is old; "again": what is new since.
  void ask(bool first);
  /// Whether the program has answered since it was asked; false again once it is asked anew.
  [[nodiscard]] bool is_answered();
  /// To "again"; a sentence where there is none: why.
  [[nodiscard]] Result<ObjectAnswer> answer() const;

 private:
  std::string stem_;
  std::optional<std::string> answer_;
  bool asked_ = false;
};

/// The questions to one program while it is watched: "first" at once, and "again" now and then, so that there is an
/// answer also of a program that ends by itself. The first pause is of 5 s and each one twice as long, up to a minute,
/// and at least 50 times as long as the latest answer held up the program. Not thread-safe; no call waits.
class ObjectQuestions {
 public:
  using Clock = std::chrono::steady_clock;

  ObjectQuestions(const std::string& folder, pid_t pid);

  /// Takes an answer that has come. True when the program is to be asked again, which ask() does.
  bool update(Clock::time_point now);
  /// "again", unless the program has not answered yet what it was asked before.
  void ask();
  /// Whether it has answered the first time, and is to answer now.
  [[nodiscard]] bool is_awaited() const { return has_begun_ && waits_; }
  /// The latest answer. `runs`: whether the program does. The error is a clause: why there is none.
  [[nodiscard]] Result<ObjectAnswer> latest(bool runs) const;

 private:
  static constexpr std::chrono::seconds kFirstPause{5};
  static constexpr std::chrono::seconds kLongestPause{60};
  static constexpr double kPauseForEachSecond = 50;

  ObjectQuestion question_;
  bool waits_ = true;
  bool has_begun_ = false;  // the first question is answered
  std::optional<Clock::time_point> next_;
  std::chrono::seconds pause_ = kFirstPause;
  std::optional<ObjectAnswer> latest_;
  std::string problem_;  // of the latest answer
};

}  // namespace tidemark
