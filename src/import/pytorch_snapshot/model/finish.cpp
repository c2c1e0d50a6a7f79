// The end of the pickle: what its outermost dict holds together becomes the snapshot.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "import/pytorch_snapshot/model/builder.h"

namespace tidemark::pytorch {
namespace {

bool is_before(const EntryText& a, const EntryText& b) {
  return a.entry < b.entry;
}

/// They come in order, but for entries whose items were set in several batches.
void sort(std::vector<EntryText>& texts) {
  if (!std::is_sorted(texts.begin(), texts.end(), is_before)) std::stable_sort(texts.begin(), texts.end(), is_before);
}

}  // namespace

Result<Snapshot> SnapshotBuilder::finish(Word root) {
  const bool has_dict = root.tag() == Tag::container && containers_[root].is_dict;
  // torch.cuda.memory_snapshot(): the segments alone.
  const bool has_list = root.tag() == Tag::container && !has_dict;
  const bool done = has_dict ? finish_snapshot(root) : has_list && finish_segments(root);
  if (!done) {
    return Error{!failure_.empty()
                     ? failure_
                     : "a pickle, but no PyTorch memory snapshot: neither segments nor device_traces in it"};
  }
  snapshot_.unknown_keys = unknown_.keys(texts);
  snapshot_.unknown_actions = unknown_.actions(texts);
  return std::move(snapshot_);
}

/// Null for something else, and (with failure()) for what was used before.
Container* SnapshotBuilder::use_once(Word word, bool is_dict) {
  if (word.tag() != Tag::container || containers_[word].is_dict != is_dict) return nullptr;
  Container& container = containers_[word];
  if (container.used) {
    fail("a segment, its blocks or a trace is there twice as the same object");
    return nullptr;
  }
  container.used = true;
  return &container;
}

bool SnapshotBuilder::finish_snapshot(Word dict) {
  const std::vector<Word> items = std::move(use_once(dict, true)->words);
  bool found = false;
  for (std::size_t n = 0; n < items.size(); n += 2) {
    found |= known(items[n]) == Known::segments || known(items[n]) == Known::device_traces;
    const bool understood = finish_item(items[n], items[n + 1]);
    if (!failure_.empty()) return false;
    if (!understood) unknown_.key(Scope::snapshot, items[n]);
  }
  return found;
}

bool SnapshotBuilder::finish_item(Word key, Word value) {
  const bool empty = value.tag() == Tag::empty_list || value.tag() == Tag::empty_dict || value.tag() == Tag::none;
  switch (known(key)) {
    case Known::segments:
      return empty || finish_segments(value);
    case Known::device_traces:
      return empty || finish_traces(value);
    case Known::external_annotations:
      return empty || finish_annotations(value);
    case Known::allocator_settings:
      return empty || finish_settings(value);
    case Known::tidemark_devices:
      return empty || finish_recorded_devices(value);
    case Known::host_segments:
    case Known::host_traces:
      return true;  // pinned memory of the host: not used
    default:
      return false;
  }
}

/// Names with spaces between them.
bool SnapshotBuilder::finish_recorded_devices(Word names) {
  if (names.tag() != Tag::text) return false;
  std::vector<Device> devices;
  for (std::string_view rest = texts[names.id()]; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const auto device = parse_device(rest.substr(0, end));
    if (!device) return false;
    devices.push_back(*device);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  snapshot_.recorded_devices = std::move(devices);
  return true;
}

/// One list for each device.
bool SnapshotBuilder::finish_traces(Word list) {
  struct Found {
    std::size_t device = 0;
    const Container* list = nullptr;
    bool is_column = false;
  };
  const Container* devices = use_once(list, false);
  if (devices == nullptr) return false;
  std::vector<Found> found;
  bool understood = devices->count == 0;
  for (std::size_t device = 0; device < devices->words.size(); ++device) {
    const Word word = devices->words[device];
    if (word.tag() == Tag::empty_list) continue;
    const Container* trace = use_once(word, false);
    if (!failure_.empty()) return false;
    if (trace == nullptr || (trace->count > 0 && trace->run_of != Tag::entry)) {
      understood = false;
    } else {
      found.push_back({device, trace, trace->count > 0 && entries_.is_column(trace->first, trace->count)});
    }
  }
  sort(user_metadata_);
  sort(compile_context_);
  // Columns last: they are empty once they are moved out.
  std::stable_partition(found.begin(), found.end(), [](const Found& each) { return !each.is_column; });
  for (const Found& each : found) {
    DeviceTrace trace;
    trace.device = static_cast<std::int32_t>(each.device);
    understood &= finish_trace(trace, *each.list, each.is_column);
    if (!failure_.empty()) return false;
    if (!trace.entries.empty()) snapshot_.traces.push_back(std::move(trace));
  }
  std::sort(snapshot_.traces.begin(), snapshot_.traces.end(),
            [](const DeviceTrace& a, const DeviceTrace& b) { return a.device < b.device; });
  return understood;
}

bool SnapshotBuilder::finish_trace(DeviceTrace& trace, const Container& list, bool is_column) {
  bool understood = true;
  if (is_column) {
    trace.entries = entries_.take_column(list.first);
    if (trace.entries.empty()) fail("two devices have the same trace");
  } else {
    trace.entries.reserve(list.count + list.words.size());
    for (std::uint32_t n = 0; n < list.count; ++n) trace.entries.push_back(entries_[list.first + n]);
    for (const Word word : list.words) {
      if (word.tag() == Tag::entry) {
        trace.entries.push_back(entries_[word.id()]);
      } else {
        understood = false;
      }
    }
  }
  finish_texts(user_metadata_, list, trace.user_metadata);
  finish_texts(compile_context_, list, trace.compile_context);
  return understood;
}

/// The texts of a list's entries, by their places in it.
void SnapshotBuilder::finish_texts(const std::vector<EntryText>& of_all, const Container& list,
                                   std::vector<EntryText>& of_trace) {
  const auto take = [&](std::uint32_t first, std::uint32_t count, std::uint32_t place) {
    auto text = std::lower_bound(of_all.begin(), of_all.end(), EntryText{first, {}}, is_before);
    for (; text != of_all.end() && text->entry - first < count; ++text) {
      of_trace.push_back({text->entry - first + place, stacks_.string(text->text.value)});
    }
  };
  if (list.count > 0) take(list.first, list.count, 0);
  std::uint32_t place = 0;
  for (const Word word : list.words) {
    if (word.tag() == Tag::entry) take(word.id(), 1, place++);
  }
}

}  // namespace tidemark::pytorch
