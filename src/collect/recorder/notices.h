// What the recorder tells its user about processes: a job has thousands, and nobody reads as many lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace tidemark {

class Notices {
 public:
  enum class Kind : std::uint8_t { not_recorded, stopped, size_limit, still_running };

  /// `say` gets one-line messages.
  explicit Notices(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  void say(const std::string& message) const { say_(message); }
  /// Says the first few of a kind and counts the others.
  void say(Kind kind, const std::string& message);
  /// Says how many others there were.
  void say_others();

 private:
  std::function<void(const std::string&)> say_;
  std::array<std::size_t, 4> counts_{};
};

}  // namespace tidemark
