#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/common/profile.h"
#include "analyze/common/recording_info.h"
#include "base/arithmetic.h"
#include "base/units.h"
#include "export/format.h"
#include "export/frame_list.h"
#include "export/gzip.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

// Messages and field numbers of pprof's profile.proto (github.com/google/pprof, proto/profile.proto). All text is in
// one table, and fields contain indexes into it; number 0 of a function, mapping or location means none.
namespace pprof {
enum class Profile : protozero::pbf_tag_type {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14,
};
enum class ValueType : protozero::pbf_tag_type { type = 1, unit = 2 };
enum class Sample : protozero::pbf_tag_type { location_id = 1, value = 2, label = 3 };
enum class Label : protozero::pbf_tag_type { key = 1, str = 2 };
enum class Mapping : protozero::pbf_tag_type {
  id = 1,
  filename = 5,
  has_functions = 7,
  has_filenames = 8,
  has_line_numbers = 9,
};
enum class Location : protozero::pbf_tag_type { id = 1, mapping_id = 2, line = 4 };
enum class Line : protozero::pbf_tag_type { function_id = 1, line = 2 };
enum class Function : protozero::pbf_tag_type { id = 1, name = 2, filename = 4 };
}  // namespace pprof

template <typename Message>
using Builder = protozero::pbf_builder<Message>;

class ProfileWriter {
 public:
  ProfileWriter(const Store& store, Symbols& symbols, const Attribution* attribution)
      : store_(store), attribution_(attribution), frames_(symbols) {
    text("");
  }

  std::string write(const std::vector<ProfileDevice>& devices) {
    add_sample_types();
    for (const ProfileDevice& device : devices) add_device(device);
    add_locations();
    if (const auto& start = store_.definitions.process.start_wall_ns) {
      profile_.add_int64(pprof::Profile::time_nanos, static_cast<std::int64_t>(*start));
    }
    profile_.add_int64(pprof::Profile::duration_nanos, static_cast<std::int64_t>(store_.end_ns));
    for (const std::string& line : texts_) profile_.add_string(pprof::Profile::string_table, line);
    return std::move(bytes_);
  }

  void comment(const std::string& line) { profile_.add_int64(pprof::Profile::comment, text(line)); }

 private:
  // Index into the table of strings.
  std::int64_t text(const std::string& raw) {
    const auto [entry, is_new] = text_of_.try_emplace(printable(raw), static_cast<std::int64_t>(texts_.size()));
    if (is_new) texts_.push_back(entry->first);
    return entry->second;
  }

  void add_value_type(pprof::Profile field, const char* type, const char* unit) {
    const auto type_text = text(type);
    const auto unit_text = text(unit);
    Builder<pprof::ValueType> value(profile_, field);
    value.add_int64(pprof::ValueType::type, type_text);
    value.add_int64(pprof::ValueType::unit, unit_text);
  }

  // The names of Go's heap profiles, which pprof recognizes.
  void add_sample_types() {
    add_value_type(pprof::Profile::sample_type, "alloc_objects", "count");
    add_value_type(pprof::Profile::sample_type, "alloc_space", "bytes");
    add_value_type(pprof::Profile::sample_type, "inuse_objects", "count");
    add_value_type(pprof::Profile::sample_type, "inuse_space", "bytes");
    add_value_type(pprof::Profile::period_type, "space", "bytes");
    profile_.add_int64(pprof::Profile::period, 1);  // bytes between samples: every allocation is included
    profile_.add_int64(pprof::Profile::default_sample_type, text("inuse_space"));
  }

  void add_device(const ProfileDevice& device) {
    const std::string name = to_string(device.device);
    comment(fmt::format("inuse of {}: {} {}", name, format_bytes(device.held_bytes + device.unrecorded_bytes),
                        at_text(device.at_ns)));
    for (const ProfileStack& stack : device.stacks) {
      add_sample(name, frames_.stack(stack.stack), stack, owner_labels(stack.owner));
    }
    if (device.unrecorded_bytes == 0) return;
    ProfileStack unrecorded;
    unrecorded.held_bytes = device.unrecorded_bytes;
    add_sample(name, {frames_.named("(not recorded)")}, unrecorded, {});
  }

  // Keys and values; empty without attribution.
  std::vector<std::pair<std::int64_t, std::int64_t>> owner_labels(const Owner& owner) {
    if (attribution_ == nullptr) return {};
    std::vector<std::pair<std::int64_t, std::int64_t>> labels;
    const auto add = [&](const char* key, std::string_view value) {
      const auto key_text = text(key);
      labels.emplace_back(key_text, text(std::string(value)));
    };
    add("category", name_in(kCategoryNames, owner.category));
    add("phase", name_in(kPhaseNames, owner.phase));
    add("component", name_in(kComponentNames, owner.component));
    if (owner.module.valid()) add("module", attribution_->modules[owner.module.value].path);
    return labels;
  }

  void add_sample(const std::string& device, const std::vector<std::uint32_t>& frames, const ProfileStack& stack,
                  std::vector<std::pair<std::int64_t, std::int64_t>> labels) {
    const auto device_key = text("device");
    labels.emplace(labels.begin(), device_key, text(device));
    Builder<pprof::Sample> sample(profile_, pprof::Profile::sample);
    std::vector<std::uint64_t> locations;  // innermost first
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) locations.push_back(*frame + 1);
    sample.add_packed_uint64(pprof::Sample::location_id, locations.begin(), locations.end());
    const std::vector<std::int64_t> values = {
        saturating_change(0, stack.allocated_blocks), saturating_change(0, stack.allocated_bytes),
        saturating_change(0, stack.held_blocks), saturating_change(0, stack.held_bytes)};
    sample.add_packed_int64(pprof::Sample::value, values.begin(), values.end());
    for (const auto& [key, value] : labels) {
      Builder<pprof::Label> label(sample, pprof::Sample::label);
      label.add_int64(pprof::Label::key, key);
      label.add_int64(pprof::Label::str, value);
    }
  }

  // Every frame is a location, numbered from 1. pprof shows the first mapping as the profile's file: the recording, to
  // which everything except native code belongs.
  void add_locations() {
    const std::uint64_t recording = mapping(std::string(base_name(store_.path)));
    std::uint64_t id = 0;
    for (const FrameName& frame : frames_.frames()) {
      const bool native = frame.kind == Location::Kind::native && !frame.file.empty();
      const std::uint64_t mapping_id = native ? mapping(frame.file) : recording;
      const std::uint64_t function_id = function(frame);
      Builder<pprof::Location> location(profile_, pprof::Profile::location);
      location.add_uint64(pprof::Location::id, ++id);
      location.add_uint64(pprof::Location::mapping_id, mapping_id);
      Builder<pprof::Line> line(location, pprof::Location::line);
      line.add_uint64(pprof::Line::function_id, function_id);
      if (frame.line != 0) line.add_int64(pprof::Line::line, frame.line);
    }
  }

  // The flags mark names as resolved already, so that pprof does not try to.
  std::uint64_t mapping(const std::string& file) {
    const auto [entry, is_new] = mappings_.try_emplace(file, mappings_.size() + 1);
    if (!is_new) return entry->second;
    const auto name = text(file);
    Builder<pprof::Mapping> mapping(profile_, pprof::Profile::mapping);
    mapping.add_uint64(pprof::Mapping::id, entry->second);
    mapping.add_int64(pprof::Mapping::filename, name);
    mapping.add_bool(pprof::Mapping::has_functions, true);
    mapping.add_bool(pprof::Mapping::has_filenames, true);
    mapping.add_bool(pprof::Mapping::has_line_numbers, true);
    return entry->second;
  }

  // A file is a source file, which `pprof -list` prints: for native code it is unknown, its library is the mapping.
  std::uint64_t function(const FrameName& frame) {
    const auto name = text(frame.function);
    const auto file = text(frame.kind == Location::Kind::native ? std::string() : frame.file);
    const auto [entry, is_new] = functions_.try_emplace({name, file}, functions_.size() + 1);
    if (!is_new) return entry->second;
    // Without a system_name: if it equals the name, pprof takes "<module>" for the arguments of a C++ template.
    Builder<pprof::Function> function(profile_, pprof::Profile::function);
    function.add_uint64(pprof::Function::id, entry->second);
    function.add_int64(pprof::Function::name, name);
    function.add_int64(pprof::Function::filename, file);
    return entry->second;
  }

  const Store& store_;
  const Attribution* attribution_;
  FrameList frames_;
  std::string bytes_;
  Builder<pprof::Profile> profile_{bytes_};
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int64_t> text_of_;
  std::unordered_map<std::string, std::uint64_t> mappings_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> functions_;
};

/// Memory allocated at a moment ("inuse") and in total ("alloc") by stack: a gzipped profile.proto.
Result<void> write_pprof(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                         const Progress& /*progress*/) {
  const auto devices = analyze_profile(store, {options.device, options.moment, options.attribution, options.filter});
  if (!devices) return devices.error();
  ProfileWriter writer(store, symbols, options.attribution);
  writer.comment("exporter: tidemark " TIDEMARK_VERSION);
  if (!analyze_data_quality(store, symbols).complete) writer.comment("events are missing");
  return output(gzip(writer.write(*devices)));
}

}  // namespace

ExportFormat pprof_format() {
  return {"pprof", "stacks at a point in time and in total, for `go tool pprof`", ".pb.gz", true, true, write_pprof};
}

}  // namespace tidemark
