#include "import/pytorch_snapshot/model/snapshot_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace tidemark::pytorch {

namespace {

constexpr std::size_t kMaxIndex = std::numeric_limits<std::uint16_t>::max();

/// The kind of a dict with these keys; Tag::container if they do not determine it.
Tag kind_of(std::span<const PickleValue> items) {
  for (std::size_t n = 0; n < items.size(); n += 2) {
    switch (known(items[n])) {
      case Known::action:
        return Tag::entry;
      case Known::filename:
      case Known::line:
        return Tag::frame;
      case Known::state:
      case Known::history:
        return Tag::block;
      default:
        break;
    }
  }
  return Tag::container;
}

constexpr std::size_t kFactors = 128;

constexpr std::array<std::uint64_t, kFactors> make_factors() {
  std::array<std::uint64_t, kFactors> factors{};
  for (std::size_t n = 0; n < kFactors; ++n) factors[n] = mix(n + 1) | 1;
  return factors;
}

constexpr std::array<std::uint64_t, kFactors> kFactor = make_factors();

/// A sum of products without dependencies between them: stacks are looked up for most entries of a trace.
std::uint64_t hash_of(std::span<const PickleValue> frames) {
  std::uint64_t hash = frames.size();
  while (!frames.empty()) {
    const auto part = frames.first(std::min(frames.size(), kFactors));
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n < part.size(); ++n) sum += (part[n].id() + std::uint64_t{1}) * kFactor[n];
    hash = mix(hash ^ sum);
    frames = frames.subspan(part.size());
  }
  return hash;
}

}  // namespace

SnapshotBuilder::SnapshotBuilder(const PickleInput& input) : input_(input) {
  snapshot_.streams = {0};
  streams_[0] = 0;
  snapshot_.pools = {PoolId{}};
}

// ---- while the pickle is read: the kinds of lists and dicts ----

PickleValue SnapshotBuilder::set_items(PickleValue dict, std::span<const PickleValue> items) {
  switch (dict.tag()) {
    case Tag::empty_dict:
      return items.empty() ? dict : fill_new(kind_of(items), items);
    case Tag::entry:
      return fill_entry(dict.id(), items) ? dict : PickleValue();
    case Tag::block:
      return fill_block(dict.id(), items) ? dict : PickleValue();
    case Tag::frame:
      return fill_frame(stacks_.frame(LocationId{dict.id()}), items);
    case Tag::container:
      if (containers_[dict].is_dict) return fill_container(dict, items);
      break;
    default:
      break;
  }
  return fail("items are set in a value that is not a dict");
}

PickleValue SnapshotBuilder::fill_new(Tag kind, std::span<const PickleValue> items) {
  switch (kind) {
    case Tag::entry: {
      const std::uint32_t id = entries_.add(input_.share_read());
      TraceEntry& entry = entries_[id];
      entry.has_address = entry.has_size = entry.has_time = false;
      return fill_entry(id, items) ? PickleValue(Tag::entry, id) : PickleValue();
    }
    case Tag::block: {
      const auto id = static_cast<std::uint32_t>(blocks_.size());
      make_room(blocks_, input_.share_read());
      blocks_.emplace_back();
      blocks_.back().address = kAbsent;
      blocks_.back().requested_size = kAbsent;
      return fill_block(id, items) ? PickleValue(Tag::block, id) : PickleValue();
    }
    case Tag::frame:
      return fill_frame({}, items);
    default:
      return fill_container(containers_.make(true), items);
  }
}

PickleValue SnapshotBuilder::fill_container(PickleValue dict, std::span<const PickleValue> items) {
  std::vector<PickleValue>& so_far = containers_[dict].items;
  so_far.insert(so_far.end(), items.begin(), items.end());
  const Tag kind = kind_of(items);
  if (kind == Tag::container) return dict;
  const std::vector<PickleValue> all = std::exchange(so_far, {});
  return fill_new(kind, all);
}

PickleValue SnapshotBuilder::append(PickleValue list, std::span<const PickleValue> items) {
  const auto all_frames = [&] {
    return std::all_of(items.begin(), items.end(), [](PickleValue item) { return item.tag() == Tag::frame; });
  };
  const auto holds_something = [&] {
    return std::any_of(items.begin(), items.end(), [](PickleValue item) {
      return item.tag() == Tag::frame || (item.is_mutable() && item.tag() != Tag::skipped);
    });
  };
  switch (list.tag()) {
    case Tag::empty_list: {
      if (items.empty()) return list;
      if (all_frames()) return PickleValue(Tag::stack, stacks_.stack(items).value);
      if (!holds_something()) return PickleValue(Tag::skipped);
      if (items.front().tag() == Tag::entry) entries_.begin_list(items.front().id(), items.size());
      const PickleValue made = containers_.make(false);
      pytorch::append(containers_[made], items);
      return made;
    }
    case Tag::stack: {  // Python's pickler writes lists in batches of 1000: use_frames() will see all
      if (items.empty()) return list;
      const PickleValue made = containers_.make(false);
      containers_[made].items = stacks_.frames_of(StackId{list.id()});
      pytorch::append(containers_[made], items);
      return made;
    }
    case Tag::container:
      if (containers_[list].is_dict) break;
      pytorch::append(containers_[list], items);
      return list;
    case Tag::skipped:
      return list;
    default:
      break;
  }
  return fail("items are appended to a value that is not a list");
}

PickleValue SnapshotBuilder::fill_frame(Frame frame, std::span<const PickleValue> items) {
  std::vector<Known> invalid;
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const PickleValue value = items[n + 1];
    std::uint64_t line = 0;
    bool valid = value.tag() == Tag::text;
    switch (known(items[n])) {
      case Known::filename:
        if (valid) frame.file = value.id();
        break;
      case Known::name:
        if (valid) frame.function = value.id();
        break;
      case Known::line:
        valid = tables.numbers.get(value, line) && line <= std::numeric_limits<std::uint32_t>::max();
        if (valid) frame.line = static_cast<std::uint32_t>(line);
        break;
      case Known::fx_node_name:
        frame.fx_node = valid ? value.id() : 0;
        continue;
      case Known::fx_original_trace:
        frame.fx_trace = valid ? value.id() : 0;
        continue;
      case Known::fx_node_op:
      case Known::fx_node_target:
      case Known::fx_node_info:
        continue;
      default:
        unknown_.key(Scope::frame, items[n]);
        continue;
    }
    if (!valid) invalid.push_back(known(items[n]));
  }
  const LocationId location = stacks_.location(frame);
  for (const Known key : invalid) invalid_.add(Scope::frame, key, location.value);
  return PickleValue(Tag::frame, location.value);
}

// ---- at its end: the outermost dict ----

Result<Snapshot> SnapshotBuilder::finish(PickleValue root) {
  bool found = root.tag() == Tag::container;
  if (found && containers_[root].is_dict) {
    found = finish_snapshot(root);
  } else if (found) {
    finish_segments(root);  // torch.cuda.memory_snapshot(): the segments alone
  }
  if (!failure_.empty()) return Error{failure_};
  const bool invalid =
      invalid_.has(Scope::snapshot, Known::segments) || invalid_.has(Scope::snapshot, Known::device_traces);
  if (!found || (invalid && snapshot_.segments.empty() && snapshot_.traces.empty())) {
    return Error{
        "a pickle, but not a PyTorch memory snapshot (expected a dict with lists `segments` and `device_traces`, or a "
        "list of segments; torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") writes one)"};
  }
  invalid_.place(Scope::frame, [&](std::uint32_t id) { return place_of_frame(LocationId{id}); });
  snapshot_.generated_frames = stacks_.generated();
  snapshot_.invalid_fields = invalid_.names();
  snapshot_.unknown_keys = unknown_.keys(tables.texts);
  snapshot_.unknown_actions = unknown_.actions(tables.texts);
  return std::move(snapshot_);
}

/// The first list of frames that the frame is in. Time in proportion to the snapshot.
std::string SnapshotBuilder::place_of_frame(LocationId location) const {
  const std::vector<StackNode>& nodes = snapshot_.definitions.stacks;
  std::vector<bool> holds(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    holds[n] = nodes[n].location == location || (nodes[n].parent.valid() && holds[nodes[n].parent.value]);
  }
  const auto in = [&](const auto& item) { return item.stack.valid() && holds[item.stack.value]; };
  for (const DeviceTrace& trace : snapshot_.traces) {
    const auto entry = std::find_if(trace.entries.begin(), trace.entries.end(), in);
    if (entry == trace.entries.end()) continue;
    return fmt::format("device_traces[{}][{}].frames", trace.device, entry - trace.entries.begin());
  }
  for (std::size_t n = 0; n < snapshot_.segments.size(); ++n) {
    const SnapshotSegment& segment = snapshot_.segments[n];
    if (in(segment)) return fmt::format("segments[{}].frames", n);
    if (std::any_of(segment.blocks.begin(), segment.blocks.end(), in))
      return fmt::format("segments[{}].blocks.frames", n);
  }
  return {};
}

/// Null for another kind, and (with failure()) for a container that was used before.
Container* SnapshotBuilder::use_once(PickleValue value, bool is_dict) {
  if (value.tag() != Tag::container || containers_[value].is_dict != is_dict) return nullptr;
  Container& container = containers_[value];
  if (container.used) {
    fail("the same object is used twice: a segment, its blocks or a trace");
    return nullptr;
  }
  container.used = true;
  return &container;
}

/// False: it has none of the keys of a snapshot.
bool SnapshotBuilder::finish_snapshot(PickleValue dict) {
  const std::vector<PickleValue> items = std::move(use_once(dict, true)->items);
  bool found = false;
  for (std::size_t n = 0; n < items.size() && failure_.empty(); n += 2) {
    found |= known(items[n]) == Known::segments || known(items[n]) == Known::device_traces;
    finish_item(items[n], items[n + 1]);
  }
  return found;
}

void SnapshotBuilder::finish_item(PickleValue key, PickleValue value) {
  const bool is_none = value.tag() == Tag::none;
  const bool is_empty_list = value.tag() == Tag::empty_list;
  switch (known(key)) {
    case Known::segments:
      if (!is_empty_list) finish_segments(value);
      break;
    case Known::device_traces:
      if (!is_empty_list) finish_traces(value);
      break;
    case Known::external_annotations:
      if (!is_empty_list && !is_none) finish_annotations(value);
      break;
    case Known::allocator_settings:
      if (value.tag() != Tag::empty_dict && !is_none) finish_settings(value);
      break;
    case Known::tidemark_devices:
      finish_recorded_devices(value);
      break;
    case Known::host_segments:
    case Known::host_traces:
      break;  // pinned memory of the host: not used
    default:
      unknown_.key(Scope::snapshot, key);
  }
}

// ---- parts shared by several objects of a snapshot ----

bool SnapshotBuilder::use_frames(StackId& stack, PickleValue value) {
  if (value.tag() == Tag::stack) {
    stack.value = value.id();
    return true;
  }
  stack = StackId{};
  if (value.tag() != Tag::container) return value.tag() == Tag::empty_list || value.tag() == Tag::none;
  return use_long_stack(stack, containers_[value]);
}

/// A list of frames that was filled in several batches: joined at its first use, and a stack from then on.
bool SnapshotBuilder::use_long_stack(StackId& stack, Container& list) {
  if (list.run_of != Tag::stack) {
    const bool frames =
        !list.is_dict && !list.items.empty() &&
        std::all_of(list.items.begin(), list.items.end(), [](PickleValue item) { return item.tag() == Tag::frame; });
    if (!frames) return false;
    list.run_of = Tag::stack;
    list.first = stacks_.stack(std::exchange(list.items, {})).value;
  }
  stack.value = list.first;
  return true;
}

/// False: more streams than there are indexes.
bool SnapshotBuilder::use_stream(std::uint16_t& index, PickleValue value, bool& known_value) {
  std::uint64_t handle = 0;
  known_value = tables.numbers.get_address(value, handle);
  if (!known_value) return true;
  if (snapshot_.streams[last_stream_] != handle) {
    const auto [found, inserted] = streams_.try_emplace(handle, static_cast<std::uint16_t>(snapshot_.streams.size()));
    if (inserted) {
      if (snapshot_.streams.size() > kMaxIndex) {
        fail(fmt::format("more than {} streams", kMaxIndex + 1));
        return false;
      }
      snapshot_.streams.push_back(handle);
    }
    last_stream_ = found->second;
  }
  index = last_stream_;
  return true;
}

/// False: more pools than there are indexes.
bool SnapshotBuilder::use_pool(std::uint16_t& index, PickleValue value, bool& known_value) {
  known_value = value.tag() == Tag::pair;
  if (!known_value) return true;
  const auto [first, second] = tables.pairs[value.id()];
  const PoolId pool{first, second};
  if (pool == PoolId{}) {
    index = 0;
    return true;
  }
  const auto [found, inserted] =
      pools_by_pair_.try_emplace(value.id(), static_cast<std::uint16_t>(snapshot_.pools.size()));
  if (inserted) {
    if (snapshot_.pools.size() > kMaxIndex) {
      fail(fmt::format("more than {} memory pools", kMaxIndex + 1));
      return false;
    }
    snapshot_.pools.push_back(pool);
  }
  index = found->second;
  return true;
}

bool SnapshotBuilder::get_device(PickleValue value, std::int32_t& device) const {
  std::int64_t number = 0;
  if (!tables.numbers.get(value, number) || number < -1 || number > std::numeric_limits<std::int32_t>::max())
    return false;
  device = static_cast<std::int32_t>(number);
  return true;
}

StringId StackTable::string(std::uint32_t text) {
  if (text >= strings_.size()) strings_.resize(texts_.count());
  StringId& id = strings_[text];
  if (!id.valid()) {
    id.value = static_cast<std::uint32_t>(definitions_.strings.size());
    definitions_.strings.emplace_back(texts_[text]);
  }
  return id;
}

LocationId StackTable::location(const Frame& frame) {
  const std::uint64_t generated = std::uint64_t{frame.fx_node} << 32 | frame.fx_trace;
  const std::uint64_t hash = mix((std::uint64_t{frame.file} << 32 | frame.function) ^ mix(frame.line ^ mix(generated)));
  const std::uint32_t id = locations_.find_or_make(
      hash, [&](std::uint32_t known) { return frames_[known] == frame; },
      [&] {
        Location location;
        location.file = string(frame.file);
        location.function = string(frame.function);
        location.line = frame.line;
        definitions_.locations.push_back(location);
        frames_.push_back(frame);
        return static_cast<std::uint32_t>(frames_.size() - 1);
      });
  return LocationId{id};
}

std::vector<GeneratedFrame> StackTable::generated() {
  std::vector<GeneratedFrame> generated;
  for (std::uint32_t id = 0; id < frames_.size(); ++id) {
    const Frame& frame = frames_[id];
    if (frame.fx_node == 0 && frame.fx_trace == 0) continue;
    GeneratedFrame& found = generated.emplace_back();
    found.location = LocationId{id};
    if (frame.fx_node != 0) found.node = string(frame.fx_node);
    if (frame.fx_trace != 0) found.trace = string(frame.fx_trace);
  }
  return generated;
}

bool StackTable::same(StackId stack, std::span<const PickleValue> frames) const {
  for (const PickleValue frame : frames) {
    if (!stack.valid()) return false;
    const StackNode& node = definitions_.stacks[stack.value];
    if (node.location.value != frame.id()) return false;
    stack = node.parent;
  }
  return !stack.valid();
}

StackId StackTable::build(std::span<const PickleValue> frames) {
  StackId stack;
  for (std::size_t n = frames.size(); n > 0; --n) {
    const StackNode wanted{stack, LocationId{frames[n - 1].id()}};
    stack.value = nodes_.find_or_make(
        mix(std::uint64_t{wanted.parent.value} << 32 | wanted.location.value),
        [&](std::uint32_t known) {
          const StackNode& node = definitions_.stacks[known];
          return node.parent == wanted.parent && node.location == wanted.location;
        },
        [&] {
          definitions_.stacks.push_back(wanted);
          return static_cast<std::uint32_t>(definitions_.stacks.size() - 1);
        });
  }
  return stack;
}

StackId StackTable::stack(std::span<const PickleValue> frames) {
  return StackId{stacks_.find_or_make(
      hash_of(frames), [&](std::uint32_t known) { return same(StackId{known}, frames); },
      [&] { return build(frames).value; })};
}

std::vector<PickleValue> StackTable::frames_of(StackId stack) const {
  std::vector<PickleValue> frames;
  for (; stack.valid(); stack = definitions_.stacks[stack.value].parent) {
    frames.emplace_back(Tag::frame, definitions_.stacks[stack.value].location.value);
  }
  return frames;
}

}  // namespace tidemark::pytorch
