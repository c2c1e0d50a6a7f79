#include "import/pytorch_snapshot/model/builder.h"

#include <algorithm>
#include <utility>

namespace tidemark::pytorch {
namespace {

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
    case Tag::stack: {  // Python's pickler writes lists in pieces of 1000: use_frames() will see all
      const Word made = containers_.make(false);
      containers_[made].words = stacks_.frames_of(StackId{list.id()});
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
