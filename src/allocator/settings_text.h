// Settings of PyTorch's caching allocator as PYTORCH_CUDA_ALLOC_CONF has them: "name:value,name:[a:1,b:2]".
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/rules.h"
#include "base/result.h"

namespace tidemark {

/// One setting: name and value, as written.
using NamedSetting = std::pair<std::string, std::string>;
using SettingList = std::vector<NamedSetting>;

/// Fails for parts that are not NAME:VALUE. Names are not checked.
[[nodiscard]] Result<SettingList> parse_settings(const std::string& text);
[[nodiscard]] std::string settings_text(const SettingList& settings);

/// `base` with the values of `changes`; settings that `base` does not have come behind it.
[[nodiscard]] SettingList with_changes(SettingList base, const SettingList& changes);

/// Only settings that affect the placement of blocks, because a file may contain any.
[[nodiscard]] SettingList placement_settings(const SettingList& settings);

/// As the rules of the allocator take them. An error names the value that PyTorch would refuse.
[[nodiscard]] Result<pytorch::AllocatorSettings> allocator_settings(const SettingList& settings);

/// Settings of an environment: those that the rules know, without what they do not. Has `text` as it is.
[[nodiscard]] pytorch::AllocatorSettings known_settings(const std::string& text);

}  // namespace tidemark
