#include "cli/presets/presets.h"

#include <fmt/format.h>

namespace tidemark::cli {

std::unique_ptr<Preset> make_dp_sgd_preset();

namespace {

std::vector<ListedPreset> all_presets() {
  std::vector<ListedPreset> list;
  list.push_back({"dp-sgd", "fine-tuning with DP-SGD (Opacus)", "memory_analysis_overview", "memory_heatmap", "results",
                  make_dp_sgd_preset()});
  return list;
}

std::string heading_of(const ListedPreset& preset) {
  return fmt::format("With --preset {}, {}", preset.name, preset.description);
}

}  // namespace

Presets::Presets(CommandLine& app, std::string& folder) : app_(app), list_(all_presets()) {
  std::string names;
  for (const ListedPreset& preset : list_) names += (names.empty() ? "" : "|") + preset.name;
  app.add_option("--preset", name_, "A program that comes with Tidemark, with options of its own, in place of PROGRAM")
      ->one_of(names);
  for (const ListedPreset& preset : list_) {
    app.group(heading_of(preset));
    preset.preset->add_options(app, folder);
  }
}

Result<const ListedPreset*> Presets::chosen() const {
  const ListedPreset* chosen = nullptr;
  for (const ListedPreset& preset : list_) {
    if (preset.name == name_) chosen = &preset;
    const auto given = app_.first_given(heading_of(preset));
    if (given && preset.name != name_) return Error{fmt::format("{}: only with --preset {}", *given, preset.name)};
  }
  return chosen;
}

}  // namespace tidemark::cli
