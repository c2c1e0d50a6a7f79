#include "import/pytorch_snapshot/snapshot_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tidemark::pytorch {
namespace {

constexpr std::size_t kMaxIndex = std::numeric_limits<std::uint16_t>::max();
/// Python's pickler writes lists in pieces of 1000; a stack that comes in pieces is put together anew for each.
constexpr std::size_t kMaxStackInPieces = 1U << 15;

bool is_text(Word word) {
  return word.tag() == Tag::text;
}

/// What a dict with these keys is; Tag::container where they do not say.
Tag kind_of(std::span<const Word> items) {
  for (std::size_t n = 0; n < items.size(); n += 2) {
    switch (known(items[n])) {
      case Known::action:
        return Tag::entry;
      case Known::filename:
      case Known::line:
        return Tag::location;
      case Known::state:
      case Known::history:
        return Tag::block;
      default:
        break;
    }
  }
  return Tag::container;
}

}  // namespace

SnapshotBuilder::SnapshotBuilder() {
  snapshot_.streams = {0};
  streams_[0] = 0;
  snapshot_.pools = {PoolId{}};
}

Word SnapshotBuilder::set_items(Word dict, std::span<const Word> items) {
  switch (dict.tag()) {
    case Tag::empty_dict:
      return items.empty() ? dict : fill_new(kind_of(items), items);
    case Tag::entry:
      return fill_entry(dict.id(), items) ? dict : Word();
    case Tag::block:
      return fill_block(dict.id(), items) ? dict : Word();
    case Tag::location:
      return fill_frame(stacks_.frame(LocationId{dict.id()}), items);
    case Tag::container:
      if (containers_[dict].is_dict) return fill_container(dict, items);
      break;
    default:
      break;
  }
  return fail("items are set in something that is no dict");
}

Word SnapshotBuilder::fill_new(Tag kind, std::span<const Word> items) {
  switch (kind) {
    case Tag::entry: {
      const std::uint32_t id = entries_.add(share_read);
      return fill_entry(id, items) ? Word(Tag::entry, id) : Word();
    }
    case Tag::block: {
      const auto id = static_cast<std::uint32_t>(blocks_.size());
      make_room(blocks_, share_read);
      blocks_.emplace_back();
      blocks_.back().address = kAbsent;
      blocks_.back().requested_size = kAbsent;
      return fill_block(id, items) ? Word(Tag::block, id) : Word();
    }
    case Tag::location:
      return fill_frame({}, items);
    default:
      return fill_container(containers_.make(true), items);
  }
}

Word SnapshotBuilder::fill_container(Word dict, std::span<const Word> items) {
  std::vector<Word>& words = containers_[dict].words;
  words.insert(words.end(), items.begin(), items.end());
  const Tag kind = kind_of(items);
  if (kind == Tag::container) return dict;
  const std::vector<Word> all = std::exchange(words, {});
  return fill_new(kind, all);
}

Word SnapshotBuilder::fill_frame(Frame frame, std::span<const Word> items) {
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const Word value = items[n + 1];
    std::uint64_t line = 0;
    bool understood = is_text(value);
    switch (known(items[n])) {
      case Known::filename:
        if (understood) frame.file = value.id();
        break;
      case Known::name:
        if (understood) frame.function = value.id();
        break;
      case Known::line:
        understood = numbers.get(value, line) && line <= std::numeric_limits<std::uint32_t>::max();
        if (understood) frame.line = static_cast<std::uint32_t>(line);
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::frame, items[n]);
  }
  return Word(Tag::location, stacks_.location(frame).value);
}

bool SnapshotBuilder::fill_entry(std::uint32_t id, std::span<const Word> items) {
  TraceEntry& entry = entries_[id];
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const Word value = items[n + 1];
    bool understood = true;
    switch (known(items[n])) {
      case Known::action:
        use_action(entry, value);
        break;
      case Known::addr:
      case Known::device_free:
        understood = numbers.get_address(value, entry.address);
        break;
      case Known::size:
        understood = numbers.get(value, entry.size);
        break;
      case Known::stream:
        if (!use_stream(entry.stream, value, understood)) return false;
        break;
      case Known::time_us:
        understood = numbers.get(value, entry.time_us);
        break;
      case Known::pool_id:
        if (!use_pool(entry.pool, value, understood)) return false;
        break;
      case Known::frames:
        understood = use_frames(entry.stack, value);
        break;
      case Known::compile_context:
        if (known(value) == Known::not_available || known(value) == Known::empty) break;
        understood = is_text(value);
        if (understood) compile_context_.push_back({id, StringId{value.id()}});
        break;
      case Known::user_metadata:
        if (known(value) == Known::empty) break;
        understood = is_text(value);
        if (understood) user_metadata_.push_back({id, StringId{value.id()}});
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::trace, items[n]);
  }
  return true;
}

void SnapshotBuilder::use_action(TraceEntry& entry, Word value) {
  const auto first = static_cast<std::uint32_t>(Known::alloc);
  const auto last = static_cast<std::uint32_t>(Known::user_defined);
  if (is_text(value) && value.id() >= first && value.id() <= last) {
    entry.action = static_cast<Action>(value.id() - first);
  } else {
    entry.action = Action::unknown;
    unknown_.action(value);
  }
}

bool SnapshotBuilder::use_frames(StackId& stack, Word value) {
  if (value.tag() == Tag::stack) {
    stack.value = value.id();
    return true;
  }
  stack = StackId{};
  return value.tag() == Tag::empty_list || value.tag() == Tag::none;
}

/// False: more streams than there are indexes.
bool SnapshotBuilder::use_stream(std::uint16_t& index, Word value, bool& known_value) {
  std::uint64_t handle = 0;
  known_value = numbers.get_address(value, handle);
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
bool SnapshotBuilder::use_pool(std::uint16_t& index, Word value, bool& known_value) {
  known_value = value.tag() == Tag::pool;
  if (!known_value) return true;
  const PoolId pool = pools_[value.id()];
  if (pool == PoolId{}) {
    index = 0;
    return true;
  }
  const auto [found, inserted] =
      pools_by_tuple_.try_emplace(value.id(), static_cast<std::uint16_t>(snapshot_.pools.size()));
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

bool SnapshotBuilder::fill_block(std::uint32_t id, std::span<const Word> items) {
  SnapshotBlock& block = blocks_[id];
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const Word value = items[n + 1];
    bool understood = true;
    switch (known(items[n])) {
      case Known::address:
        understood = numbers.get_address(value, block.address);
        break;
      case Known::size:
        understood = numbers.get(value, block.size);
        break;
      case Known::requested_size:
        understood = numbers.get(value, block.requested_size);
        break;
      case Known::frames:
        understood = use_frames(block.stack, value);
        break;
      case Known::history:
        use_history(block, value);
        break;
      case Known::state:
        block.state = BlockState::unknown;
        if (known(value) == Known::inactive) block.state = BlockState::inactive;
        if (known(value) == Known::active_allocated) block.state = BlockState::active_allocated;
        if (known(value) == Known::active_pending_free || known(value) == Known::active_awaiting_free) {
          block.state = BlockState::active_pending_free;
        }
        understood = block.state != BlockState::unknown;
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::block, items[n]);
  }
  return true;
}

/// PyTorch 2.0: who had the block, the latest first.
void SnapshotBuilder::use_history(SnapshotBlock& block, Word value) {
  if (value.tag() != Tag::container || containers_[value].words.empty()) return;
  const Word latest = containers_[value].words.front();
  if (latest.tag() != Tag::container || !containers_[latest].is_dict) return;
  const std::vector<Word>& items = containers_[latest].words;
  for (std::size_t n = 0; n < items.size(); n += 2) {
    if (known(items[n]) == Known::real_size) numbers.get(items[n + 1], block.requested_size);
    if (known(items[n]) == Known::frames) use_frames(block.stack, items[n + 1]);
  }
}

Word SnapshotBuilder::append(Word list, std::span<const Word> items) {
  if (items.empty()) return list;
  const auto all_frames = [&] {
    return std::all_of(items.begin(), items.end(), [](Word item) { return item.tag() == Tag::location; });
  };
  const auto holds_something = [&] {
    return std::any_of(items.begin(), items.end(), [](Word item) {
      return item.tag() == Tag::location || (item.is_mutable() && item.tag() != Tag::skipped);
    });
  };
  switch (list.tag()) {
    case Tag::empty_list: {
      if (all_frames()) return Word(Tag::stack, stacks_.stack(items).value);
      if (!holds_something()) return Word(Tag::skipped);
      if (items.front().tag() == Tag::entry) entries_.begin_list(items.front().id(), items.size());
      const Word made = containers_.make(false);
      pytorch::append(containers_[made], items);
      return made;
    }
    case Tag::stack: {
      std::vector<Word> frames = stacks_.frames_of(StackId{list.id()});
      frames.insert(frames.end(), items.begin(), items.end());
      if (frames.size() > kMaxStackInPieces) return fail("a stack has too many frames");
      if (all_frames()) return Word(Tag::stack, stacks_.stack(frames).value);
      const Word made = containers_.make(false);
      pytorch::append(containers_[made], frames);
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
  return fail("items are put into something that is no list");
}

Word SnapshotBuilder::make_tuple(std::span<const Word> items) {
  PoolId pool;
  if (items.size() == 2 && numbers.get(items[0], pool.first) && numbers.get(items[1], pool.second)) {
    return pools_.intern(pool);
  }
  return Word(Tag::skipped);
}

}  // namespace tidemark::pytorch
