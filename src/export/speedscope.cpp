#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analyze/common/profile.h"
#include "export/format.h"
#include "export/frame_list.h"
#include "query/words/attribution.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

struct Sample {
  std::vector<std::uint32_t> frames;  // outermost first
  std::uint64_t bytes = 0;
};

// In the order of a walk down the tree of calls: "time order" then shows each caller once, larger ones mostly first.
// With categories, these are the outermost frames.
std::vector<Sample> samples_of(const ProfileDevice& device, bool with_categories, FrameList& frames) {
  std::vector<Sample> samples;
  for (const ProfileStack& stack : device.stacks) {
    if (stack.held_bytes == 0) continue;
    Sample& sample = samples.emplace_back();
    sample.bytes = stack.held_bytes;
    if (with_categories) sample.frames.push_back(frames.named(category_text(stack.owner.category)));
    const std::vector<std::uint32_t> below = frames.stack(stack.stack);
    sample.frames.insert(sample.frames.end(), below.begin(), below.end());
  }
  if (device.unrecorded_bytes != 0) samples.push_back({{frames.named("(not recorded)")}, device.unrecorded_bytes});
  std::sort(samples.begin(), samples.end(),
            [](const Sample& left, const Sample& right) { return left.frames < right.frames; });
  return samples;
}

Json profile_json(const ProfileDevice& device, bool with_categories, FrameList& frames) {
  Json stacks = Json::array();
  Json weights = Json::array();
  for (Sample& sample : samples_of(device, with_categories, frames)) {
    stacks.push_back(std::move(sample.frames));
    weights.push_back(sample.bytes);
  }
  return {{"type", "sampled"},
          {"name", fmt::format("{} allocated {}", to_string(device.device), at_text(device.at_ns))},
          {"unit", "bytes"},
          {"startValue", 0},
          {"endValue", device.held_bytes + device.unrecorded_bytes},
          {"samples", std::move(stacks)},
          {"weights", std::move(weights)}};
}

Json frame_json(const FrameName& frame) {
  Json object = {{"name", frame.function}};
  if (!frame.file.empty()) object["file"] = frame.file;
  if (frame.line != 0) object["line"] = frame.line;
  return object;
}

/// Memory allocated at a moment, as a profile for each device: https://www.speedscope.app/file-format-schema.json.
Result<void> write_speedscope(const Store& store, Symbols& symbols, const ExportOptions& options,
                              const ByteOutput& output, const Progress& /*progress*/) {
  const auto devices = analyze_profile(store, {options.device, options.moment, options.attribution, options.filter});
  if (!devices) return devices.error();
  if (devices->empty()) {
    return Error{fmt::format("{}: nothing was recorded, and speedscope opens no file without a profile", store.path)};
  }
  FrameList frames(symbols);
  Json profiles = Json::array();
  for (const ProfileDevice& device : *devices)
    profiles.push_back(profile_json(device, options.attribution != nullptr, frames));
  Json frame_list = Json::array();
  for (const FrameName& frame : frames.frames()) frame_list.push_back(frame_json(frame));
  const auto largest =
      std::max_element(devices->begin(), devices->end(), [](const ProfileDevice& left, const ProfileDevice& right) {
        return left.held_bytes + left.unrecorded_bytes < right.held_bytes + right.unrecorded_bytes;
      });
  const Json document = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                         {"exporter", "tidemark " TIDEMARK_VERSION},
                         {"name", base_name(store.path)},
                         {"activeProfileIndex", largest - devices->begin()},
                         {"shared", {{"frames", std::move(frame_list)}}},
                         {"profiles", std::move(profiles)}};
  return output(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

ExportFormat speedscope_format() {
  return {"speedscope",    "stacks at a point in time, for https://www.speedscope.app", ".speedscope.json", false, true,
          write_speedscope};
}

}  // namespace tidemark
