// The presets of `tidemark sweep`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/presets/preset.h"

namespace tidemark::cli {

struct ListedPreset {
  std::string name;
  std::string description;  ///< in help, above its options
  std::string curves;       ///< names of the sweep's pictures, without their endings
  std::string fits;
  std::string folder;  ///< for the results, where none is named
  std::unique_ptr<Preset> preset;
};

/// All of them, and --preset, on a command line.
class Presets {
 public:
  Presets(CommandLine& app, std::string& folder);

  /// The one that --preset names; null where it was not given. An error where an option of another one was.
  [[nodiscard]] Result<const ListedPreset*> chosen() const;

 private:
  const CommandLine& app_;
  std::string name_;
  std::vector<ListedPreset> list_;
};

}  // namespace tidemark::cli
