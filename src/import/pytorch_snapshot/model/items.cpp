// What a trace entry, a block or a frame takes from the items of its dict.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "import/pytorch_snapshot/model/builder.h"

namespace tidemark::pytorch {
namespace {

constexpr std::size_t kMaxIndex = std::numeric_limits<std::uint16_t>::max();
/// PyTorch writes three keys. Many blocks may share a dict, and each looks at all of it.
constexpr std::size_t kMaxHistoryWords = 32;

bool is_text(Word word) {
  return word.tag() == Tag::text;
}

}  // namespace

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
        understood = numbers.get_address(value, entry.address);
        break;
      case Known::device_free:  // no number where a recording was exported, which does not know
        understood = value.tag() == Tag::real || numbers.get_address(value, entry.address);
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
        snapshot_.entries_name_pools = true;
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
      case Known::internal_metadata:  // why the allocator did it; changes nothing
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
  const auto last = static_cast<std::uint32_t>(Known::annotate);
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
  if (value.tag() != Tag::container) return value.tag() == Tag::empty_list || value.tag() == Tag::none;
  return use_long_stack(stack, containers_[value]);
}

/// A list of frames that came in several pieces: put together where it is used first, and a stack from then on.
bool SnapshotBuilder::use_long_stack(StackId& stack, Container& list) {
  if (list.run_of != Tag::stack) {
    const bool frames =
        !list.is_dict && !list.words.empty() &&
        std::all_of(list.words.begin(), list.words.end(), [](Word item) { return item.tag() == Tag::location; });
    if (!frames) return false;
    list.run_of = Tag::stack;
    list.first = stacks_.stack(std::exchange(list.words, {})).value;
  }
  stack.value = list.first;
  return true;
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
  if (items.size() > kMaxHistoryWords) return;
  for (std::size_t n = 0; n < items.size(); n += 2) {
    if (known(items[n]) == Known::real_size) numbers.get(items[n + 1], block.requested_size);
    if (known(items[n]) == Known::frames) use_frames(block.stack, items[n + 1]);
  }
}

}  // namespace tidemark::pytorch
