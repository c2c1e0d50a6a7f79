// The trace entries of all devices while they are read: one column each, so that a finished one becomes a DeviceTrace
// as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "import/pytorch_snapshot/model/make_room.h"
#include "import/pytorch_snapshot/model/snapshot.h"

namespace tidemark::pytorch {

/// Not thread-safe. Entries have ids 0, 1, 2, … in the order of their making.
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

  /// A list begins with these entries. Where they are the latest, they get a column of their own.
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
  /// Moves a column out: its entries are gone then.
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
