// allocator_settings, external_annotations, and additions of an exported recording.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "import/pytorch_snapshot/model/snapshot_builder.h"

namespace tidemark::pytorch {

void SnapshotBuilder::finish_settings(PickleValue dict) {
  const Container* all = use_once(dict, true);
  if (all == nullptr) return invalid_.add(Scope::snapshot, Known::allocator_settings, "");
  AllocatorSettings& settings = snapshot_.settings.emplace();
  for (std::size_t n = 0; n < all->items.size(); n += 2) {
    const PickleValue value = all->items[n + 1];
    std::int64_t size = 0;
    double threshold = 0;
    bool valid = true;
    switch (known(all->items[n])) {
      case Known::cuda_alloc_conf:
      case Known::alloc_conf:
        valid = value.tag() == Tag::text;
        if (valid && value.id() != 0) settings.text = tables.texts[value.id()];
        break;
      case Known::max_split_size:  // without a limit, more than 63 bits
        valid = value.tag() == Tag::integer || value.tag() == Tag::wide_integer;
        if (tables.numbers.get(value, size)) settings.max_split_size = size;
        break;
      case Known::garbage_collection_threshold:
        valid = tables.numbers.get(value, threshold);
        if (valid) settings.garbage_collection_threshold = threshold;
        break;
      case Known::expandable_segments:
        valid = value.tag() == Tag::boolean;
        if (valid) settings.expandable_segments = value.boolean();
        break;
      case Known::roundup_power2_divisions:
        valid = value.tag() == Tag::empty_dict || finish_divisions(value, settings);
        break;
      default:
        break;  // settings without effect here, of pinned memory and others
    }
    if (!valid) invalid_.add(Scope::settings, known(all->items[n]), "allocator_settings");
  }
}

bool SnapshotBuilder::finish_divisions(PickleValue dict, AllocatorSettings& settings) {
  const Container* all = use_once(dict, true);
  if (all == nullptr) return false;
  bool valid = true;
  for (std::size_t n = 0; n < all->items.size(); n += 2) {
    std::uint64_t mebibytes = 0;
    std::uint64_t divisions = 0;
    const PickleValue key = all->items[n];
    bool understood = tables.numbers.get(all->items[n + 1], divisions);
    if (key.tag() == Tag::text) {
      const auto written = parse_number<decltype(mebibytes)>(tables.texts[key.id()]);
      understood = understood && written;
      mebibytes = written.value_or(0);
    } else {
      understood = understood && tables.numbers.get(key, mebibytes);
    }
    if (understood) settings.roundup_power2_divisions[mebibytes] = divisions;
    valid &= understood;
  }
  return valid;
}

void SnapshotBuilder::finish_annotations(PickleValue list) {
  Container* all = use_once(list, false);
  if (all == nullptr || all->count != 0) return invalid_.add(Scope::snapshot, Known::external_annotations, "");
  const std::vector<PickleValue> annotations = std::move(all->items);
  for (std::size_t n = 0; n < annotations.size(); ++n) {
    const Container* dict = use_once(annotations[n], true);
    if (!failure_.empty()) return;
    const std::string index = fmt::format("[{}]", n);
    if (dict == nullptr) {
      invalid_.add(Scope::snapshot, Known::external_annotations, index);
    } else {
      finish_annotation(*dict, "external_annotations" + index);
    }
  }
}

/// Leaves out an annotation if its time, or whether it begins or ends a range, is unknown.
void SnapshotBuilder::finish_annotation(const Container& dict, const std::string& place) {
  Annotation annotation;
  bool usable = true;
  bool has_time = false;
  for (std::size_t n = 0; n < dict.items.size(); n += 2) {
    const PickleValue value = dict.items[n + 1];
    std::int32_t device = 0;
    bool valid = true;
    switch (known(dict.items[n])) {
      case Known::stage:
        annotation.start = known(value) == Known::start;
        valid = annotation.start || known(value) == Known::end;
        usable &= valid;
        break;
      case Known::name:
        valid = value.tag() == Tag::text;
        if (valid) annotation.name = stacks_.string(value.id());
        break;
      case Known::device:
        valid = get_device(value, device);
        if (valid && device >= 0) annotation.device = device;
        break;
      case Known::time_us:
        valid = has_time = tables.numbers.get(value, annotation.time_us);
        break;
      default:
        unknown_.key(Scope::annotation, dict.items[n]);
    }
    if (!valid) invalid_.add(Scope::annotation, known(dict.items[n]), place);
  }
  if (usable && has_time) snapshot_.annotations.push_back(annotation);
}

/// Names with spaces between them.
void SnapshotBuilder::finish_recorded_devices(PickleValue names) {
  const auto invalid = [&] { invalid_.add(Scope::snapshot, Known::tidemark_devices, ""); };
  if (names.tag() != Tag::text) return invalid();
  std::vector<Device> devices;
  for (std::string_view rest = tables.texts[names.id()]; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const auto device = parse_device(rest.substr(0, end));
    if (!device) return invalid();
    devices.push_back(*device);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  snapshot_.recorded_devices = std::move(devices);
}

}  // namespace tidemark::pytorch
