#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording_info.h"
#include "export/format.h"
#include "export/pytorch_pickle.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

using pytorch::AllocatorSettings;
using pytorch::SnapshotPickle;
using pytorch::Word;

// By the device's number in the snapshot. PyTorch's viewer identifies devices by number only: CUDA's keep theirs,
// others come after the last of them.
std::vector<std::optional<std::size_t>> number_devices(const Store& store) {
  std::vector<std::optional<std::size_t>> devices;
  for (std::size_t index = 0; index < store.devices.size(); ++index) {
    const Device device = store.devices[index].device;
    if (device.type != DeviceType::cuda || device.index < 0) continue;
    const std::size_t number = static_cast<std::uint8_t>(device.index);
    devices.resize(std::max(devices.size(), number + 1));
    devices[number] = index;
  }
  for (std::size_t index = 0; index < store.devices.size(); ++index) {
    if (std::find(devices.begin(), devices.end(), index) == devices.end()) devices.emplace_back(index);
  }
  return devices;
}

// Marks the file for tidemark's reader: sizes must not be rounded, and segments are not real.
void write_device_names(const Store& store, const std::vector<std::optional<std::size_t>>& devices,
                        SnapshotPickle& pickle) {
  std::string names;
  for (std::size_t number = 0; number < devices.size(); ++number) {
    const Device none = {DeviceType::cuda, static_cast<std::int8_t>(number)};
    names += number == 0 ? "" : " ";
    names += to_string(devices[number] ? store.devices[*devices[number]].device : none);
  }
  pickle.word(Word::tidemark_devices);
  pickle.text(names);
}

// Ranges. PyTorch records the current device; a recording's ranges have none, and get the first.
void write_annotations(const std::vector<Mark>& marks, std::size_t device, SnapshotPickle& pickle) {
  pickle.word(Word::external_annotations);
  pickle.begin_list();
  for (const Mark& mark : marks) {
    if (mark.kind == Mark::Kind::point) continue;
    pickle.next_item();
    pickle.begin_dict();
    pickle.item(Word::stage, mark.kind == Mark::Kind::range_begin ? Word::start : Word::end);
    pickle.word(Word::name);
    pickle.string(mark.name);
    pickle.item(Word::device, device);
    pickle.time_item(mark.time_ns);
    pickle.end_dict();
  }
  pickle.end_list();
}

void write_settings(const AllocatorSettings& settings, SnapshotPickle& pickle) {
  pickle.word(Word::allocator_settings);
  pickle.begin_dict();
  pickle.word(Word::cuda_alloc_conf);
  pickle.text(printable(settings.text));
  if (settings.max_split_size) {
    pickle.word(Word::max_split_size);
    pickle.signed_integer(*settings.max_split_size);
  }
  if (settings.garbage_collection_threshold) {
    pickle.word(Word::garbage_collection_threshold);
    pickle.real(*settings.garbage_collection_threshold);
  }
  if (settings.expandable_segments) {
    pickle.word(Word::expandable_segments);
    pickle.boolean(*settings.expandable_segments);
  }
  if (!settings.roundup_power2_divisions.empty()) {
    pickle.word(Word::roundup_power2_divisions);
    pickle.begin_dict();
    for (const auto& [mebibytes, divisions] : settings.roundup_power2_divisions) {
      pickle.text(std::to_string(mebibytes));
      pickle.integer(divisions);
    }
    pickle.end_dict();
  }
  pickle.end_dict();
}

/// Allocations, frees and segments with the remaining ones at the end: a pickle as from torch.cuda.memory._snapshot().
Result<void> write_pytorch(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                           const Progress& progress) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  std::vector<std::optional<std::size_t>> devices = number_devices(store);
  for (std::size_t number = 0; number < devices.size(); ++number) {
    std::optional<std::size_t>& device = devices[number];
    if (device && std::find(selected->begin(), selected->end(), *device) == selected->end()) device.reset();
    if (!device || store.devices[*device].device.type == DeviceType::cuda) continue;
    options.tell(fmt::format("{} is device {} in PyTorch's viewer, which knows GPUs only",
                             to_string(store.devices[*device].device), number));
  }

  const auto found =
      std::find_if(devices.begin(), devices.end(), [](const auto& device) { return device.has_value(); });
  const auto first = static_cast<std::size_t>(found - devices.begin());

  SnapshotPickle pickle(store, symbols, options.attribution, output);
  pickle.begin_dict();
  pickle.word(Word::device_traces);
  pickle.begin_list();
  for (std::size_t number = 0; number < devices.size(); ++number) {
    pickle.next_item();
    if (devices[number]) {
      write_device_trace(store, *devices[number], number == first, options.filter, pickle, progress);
    } else {
      pickle.begin_list();
      pickle.end_list();
    }
  }
  pickle.end_list();
  pickle.word(Word::segments);
  pickle.begin_list();
  for (std::size_t number = 0; number < devices.size(); ++number) {
    if (devices[number]) write_device_segments(store, *devices[number], number, options.filter, pickle);
  }
  pickle.end_list();
  if (store.source.allocator_settings) write_settings(*store.source.allocator_settings, pickle);
  write_annotations(store.definitions.marks, first, pickle);
  if (store.source.kind == SourceKind::recording) write_device_names(store, devices, pickle);
  pickle.end_dict();
  return pickle.finish();
}

}  // namespace

ExportFormat pytorch_format() {
  return {"pytorch",    "a memory snapshot, for https://pytorch.org/memory_viz", ".snapshot.pickle", true, false,
          write_pytorch};
}

}  // namespace tidemark
