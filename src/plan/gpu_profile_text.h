// GPU profiles as text: a line `key = value` for each field, # for comments, [NAME] before each where there are
// several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/gpu_profiles.h"

namespace tidemark {

/// The profiles of a text; one without a [NAME] is called what `origin` is called, without folder and ending. The error
/// names `origin`, the line, and what to write there.
[[nodiscard]] Result<std::vector<GpuProfile>> parse_gpu_profiles(std::string_view text, const std::string& origin);

/// A text that parses to the same profile, but for whether it was measured.
[[nodiscard]] std::string gpu_profile_text(const GpuProfile& gpu);

/// The text of those that are known.
[[nodiscard]] std::string_view known_gpus_text();

}  // namespace tidemark
