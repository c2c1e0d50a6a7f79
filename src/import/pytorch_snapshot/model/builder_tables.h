// Data that SnapshotBuilder keeps while the pickle is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/pickle/value.h"

namespace tidemark::pytorch {

/// A list or dict that is neither a frame, a trace entry nor a block: the few containers of a snapshot.
struct Container {
  bool is_dict = false;
  bool used = false;  ///< became part of the result; only once, or small files could produce large results
  Tag run_of = Tag::unset;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  /// A dict's alternating keys and values, or a list's items. A list of entries or of blocks with consecutive ids has
  /// `run_of`, `first` and `count` instead; a list of frames, once it was used as a stack, `run_of` and the StackId as
  /// `first`.
  std::vector<PickleValue> items;
};

/// Not thread-safe.
class ContainerTable {
 public:
  PickleValue make(bool is_dict) {
    containers_.emplace_back();
    containers_.back().is_dict = is_dict;
    return PickleValue(Tag::container, static_cast<std::uint32_t>(containers_.size() - 1));
  }
  Container& operator[](PickleValue value) { return containers_[value.id()]; }

 private:
  std::vector<Container> containers_;
};

/// Puts items at the end of a list.
inline void append(Container& list, std::span<const PickleValue> items) {
  const auto continues_run = [&] {
    const Tag tag = items.front().tag();
    if (tag != Tag::entry && tag != Tag::block) return false;
    if (!list.items.empty() || (list.count > 0 && list.run_of != tag)) return false;
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
  for (std::uint32_t n = 0; n < list.count; ++n) list.items.emplace_back(list.run_of, list.first + n);
  list.run_of = Tag::unset;
  list.count = 0;
  list.items.insert(list.items.end(), items.begin(), items.end());
}

/// First index of the item of this kind with this id in a list.
inline std::optional<std::size_t> index_in(const Container& list, Tag tag, std::uint32_t id) {
  if (list.count > 0 && list.run_of == tag && id - list.first < list.count) return id - list.first;
  const auto found = std::find_if(list.items.begin(), list.items.end(),
                                  [&](PickleValue item) { return item.tag() == tag && item.id() == id; });
  if (found == list.items.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list.items.begin());
}

/// The trace entries of all devices while they are read: one column for each device, so that a finished one becomes a
/// DeviceTrace as it is. Not thread-safe. Entries have ids 0, 1, 2, … in the order of their making.
class EntryColumns {
 public:
  [[nodiscard]] std::uint32_t count() const {
    return columns_.back().first + static_cast<std::uint32_t>(columns_.back().entries.size());
  }

  std::uint32_t add(double read) {
    std::vector<TraceEntry>& entries = columns_.back().entries;
    make_room(entries, read);
    entries.emplace_back();
    return count() - 1;
  }

  TraceEntry& operator[](std::uint32_t id) {
    Column& last = columns_.back();
    Column& column = id >= last.first ? last : column_of(id);
    return column.entries[id - column.first];
  }

  /// A list begins with these entries. If they are the latest ones, they get a separate column.
  void begin_list(std::uint32_t first, std::size_t size) {
    Column& last = columns_.back();
    if (first <= last.first || first + size != count() || columns_.size() == kMaxColumns) return;
    Column next{first, {}};
    const auto from = last.entries.begin() + static_cast<std::ptrdiff_t>(first - last.first);
    next.entries.assign(from, last.entries.end());
    last.entries.erase(from, last.entries.end());
    columns_.push_back(std::move(next));
  }

  /// Whether these entries are a whole column.
  [[nodiscard]] bool is_column(std::uint32_t first, std::uint32_t size) {
    const Column& column = column_of(first);
    return column.first == first && column.entries.size() == size;
  }
  /// Moves a column out, with its entries.
  std::vector<TraceEntry> take_column(std::uint32_t first) { return std::move(column_of(first).entries); }

 private:
  /// More than the devices of a machine; a file with more lists gets them copied.
  static constexpr std::size_t kMaxColumns = 256;

  struct Column {
    std::uint32_t first = 0;
    std::vector<TraceEntry> entries;
  };

  Column& column_of(std::uint32_t id) {
    const auto after =
        std::upper_bound(columns_.begin(), columns_.end(), id,
                         [](std::uint32_t wanted, const Column& column) { return wanted < column.first; });
    return *std::prev(after);
  }

  std::vector<Column> columns_ = std::vector<Column>(1);
};

}  // namespace tidemark::pytorch
