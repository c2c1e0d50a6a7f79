// The frames of a file that refers to them by number: equal ones once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "store/symbols.h"

namespace tidemark {

class FrameList {
 public:
  explicit FrameList(Symbols& symbols) : symbols_(symbols) {}

  /// Numbers of a stack's frames, outermost first; one frame "(no stack)" for an invalid id.
  std::vector<std::uint32_t> stack(StackId id);
  /// Number of a frame that only has a name.
  std::uint32_t named(const std::string& function);

  /// By number. Native functions without their parameters.
  [[nodiscard]] const std::vector<FrameName>& frames() const { return frames_; }

 private:
  std::uint32_t add(FrameName frame);

  Symbols& symbols_;
  std::vector<FrameName> frames_;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint32_t> number_of_;
  std::unordered_map<LocationId, std::uint32_t> number_of_location_;
};

}  // namespace tidemark
