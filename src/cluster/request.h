// Questions to a job's coordinator, and its answers, which may be larger than a message.
//
//   tidemark.JOB.report       a Request: the report of now
//   tidemark.JOB.answer.ID    AnswerParts, for the program that asked with that number
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidemark {

struct Request {
  std::uint64_t id = 0;  ///< random, never 0

  bool operator==(const Request&) const = default;
};

[[nodiscard]] std::string encode(const Request& request);
/// Hostile input, as in protocol.h.
[[nodiscard]] Result<Request> decode_request(std::string_view bytes);

/// The answer as messages, each below the limit of any server.
[[nodiscard]] std::vector<std::string> answer_messages(std::string_view bytes);

/// Puts the parts of an answer together: in any order, and more than once. Hostile input.
class AnswerParts {
 public:
  static constexpr std::size_t kPartBytes = std::size_t{512} << 10;
  static constexpr std::size_t kMaxParts = 128;

  /// An error for a message that is no part of this answer.
  Result<void> take(std::string_view message);
  /// Once all parts are there.
  [[nodiscard]] std::optional<std::string> whole() const;

 private:
  std::vector<std::optional<std::string>> parts_;
};

[[nodiscard]] std::string report_subject(std::string_view job);
[[nodiscard]] std::string answer_subject(std::string_view job, std::uint64_t id);

}  // namespace tidemark
