// allocator_settings, external_annotations, and what an exported recording adds.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "import/pytorch_snapshot/model/snapshot_builder.h"

namespace tidemark::pytorch {

bool SnapshotBuilder::finish_settings(PickleValue dict) {
  const Container* all = use_once(dict, true);
  if (all == nullptr) return false;
  AllocatorSettings& settings = snapshot_.settings.emplace();
  for (std::size_t n = 0; n < all->items.size(); n += 2) {
    const PickleValue value = all->items[n + 1];
    std::int64_t size = 0;
    double threshold = 0;
    switch (known(all->items[n])) {
      case Known::cuda_alloc_conf:
      case Known::alloc_conf:
        if (value.tag() == Tag::text && value.id() != 0) settings.text = tables.texts[value.id()];
        break;
      case Known::max_split_size:
        if (tables.numbers.get(value, size)) settings.max_split_size = size;
        break;
      case Known::garbage_collection_threshold:
        if (tables.numbers.get(value, threshold)) settings.garbage_collection_threshold = threshold;
        break;
      case Known::expandable_segments:
        if (value.tag() == Tag::boolean) settings.expandable_segments = value.boolean();
        break;
      case Known::roundup_power2_divisions:
        finish_divisions(value, settings);
        break;
      default:
        break;  // what changes nothing here, of pinned memory and others
    }
  }
  return true;
}

void SnapshotBuilder::finish_divisions(PickleValue dict, AllocatorSettings& settings) {
  const Container* all = use_once(dict, true);
  if (all == nullptr) return;
  for (std::size_t n = 0; n < all->items.size(); n += 2) {
    std::uint64_t mebibytes = 0;
    std::uint64_t divisions = 0;
    const PickleValue key = all->items[n];
    bool understood = tables.numbers.get(all->items[n + 1], divisions);
    if (key.tag() == Tag::text) {
      const std::string_view text = tables.texts[key.id()];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mebibytes);
      understood = understood && error == std::errc() && end == text.data() + text.size();
    } else {
      understood = understood && tables.numbers.get(key, mebibytes);
    }
    if (understood) settings.roundup_power2_divisions[mebibytes] = divisions;
  }
}

bool SnapshotBuilder::finish_annotations(PickleValue list) {
  Container* all = use_once(list, false);
  if (all == nullptr) return false;
  const std::vector<PickleValue> annotations = std::move(all->items);
  bool understood = all->count == 0;
  for (const PickleValue value : annotations) {
    const Container* dict = use_once(value, true);
    if (!failure_.empty()) return false;
    if (dict == nullptr) {
      understood = false;
    } else {
      finish_annotation(*dict);
    }
  }
  return understood;
}

void SnapshotBuilder::finish_annotation(const Container& dict) {
  Annotation annotation;
  for (std::size_t n = 0; n < dict.items.size(); n += 2) {
    const PickleValue value = dict.items[n + 1];
    std::int32_t device = 0;
    bool understood = true;
    switch (known(dict.items[n])) {
      case Known::stage:
        annotation.start = known(value) == Known::start;
        understood = annotation.start || known(value) == Known::end;
        break;
      case Known::name:
        understood = value.tag() == Tag::text;
        if (understood) annotation.name = stacks_.string(value.id());
        break;
      case Known::device:
        understood = get_device(value, device);
        if (understood && device >= 0) annotation.device = device;
        break;
      case Known::time_us:
        understood = tables.numbers.get(value, annotation.time_us);
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::annotation, dict.items[n]);
  }
  snapshot_.annotations.push_back(annotation);
}

/// Names with spaces between them.
bool SnapshotBuilder::finish_recorded_devices(PickleValue names) {
  if (names.tag() != Tag::text) return false;
  std::vector<Device> devices;
  for (std::string_view rest = tables.texts[names.id()]; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const auto device = parse_device(rest.substr(0, end));
    if (!device) return false;
    devices.push_back(*device);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  snapshot_.recorded_devices = std::move(devices);
  return true;
}

}  // namespace tidemark::pytorch
