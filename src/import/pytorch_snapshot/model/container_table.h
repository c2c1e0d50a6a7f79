// Lists and dicts that are neither a frame, a trace entry nor a block: what holds a snapshot together. There are few.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "import/pytorch_snapshot/pickle/word.h"

namespace tidemark::pytorch {

struct Container {
  bool is_dict = false;
  bool used = false;  ///< became part of the result; nothing does twice, or small files would make large results
  Tag run_of = Tag::unset;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  /// A dict's keys and values by turns, or a list's items. A list of entries or of blocks whose ids follow each other
  /// has `run_of`, `first` and `count` instead; a list of frames, once it was used as a stack, `run_of` and the
  /// StackId as `first`.
  std::vector<Word> words;
};

/// Not thread-safe.
class ContainerTable {
 public:
  Word make(bool is_dict) {
    containers_.emplace_back();
    containers_.back().is_dict = is_dict;
    return Word(Tag::container, static_cast<std::uint32_t>(containers_.size() - 1));
  }
  Container& operator[](Word word) { return containers_[word.id()]; }

 private:
  std::vector<Container> containers_;
};

/// Puts items at the end of a list.
inline void append(Container& list, std::span<const Word> items) {
  const auto continues_run = [&] {
    const Tag tag = items.front().tag();
    if (tag != Tag::entry && tag != Tag::block) return false;
    if (!list.words.empty() || (list.count > 0 && list.run_of != tag)) return false;
    const std::uint32_t first = list.count > 0 ? list.first + list.count : items.front().id();
    for (std::size_t n = 0; n < items.size(); ++n) {
      if (items[n].tag() != tag || items[n].id() != first + n) return false;
    }
    return true;
  };
  if (items.empty()) return;
  if (continues_run()) {
    if (list.count == 0) {
      list.run_of = items.front().tag();
      list.first = items.front().id();
    }
    list.count += static_cast<std::uint32_t>(items.size());
    return;
  }
  for (std::uint32_t n = 0; n < list.count; ++n) list.words.emplace_back(list.run_of, list.first + n);
  list.run_of = Tag::unset;
  list.count = 0;
  list.words.insert(list.words.end(), items.begin(), items.end());
}

}  // namespace tidemark::pytorch
