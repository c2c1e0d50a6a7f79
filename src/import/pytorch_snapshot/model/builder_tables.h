// What SnapshotBuilder keeps while the pickle is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/pickle/value.h"
#include "import/pytorch_snapshot/pickle/value_tables.h"

namespace tidemark::pytorch {

/// A list or dict that is neither a frame, a trace entry nor a block: what holds a snapshot together. There are few.
struct Container {
  bool is_dict = false;
  bool used = false;  ///< became part of the result; nothing does twice, or small files would make large results
  Tag run_of = Tag::unset;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  /// A dict's keys and values by turns, or a list's items. A list of entries or of blocks whose ids follow each other
  /// has `run_of`, `first` and `count` instead; a list of frames, once it was used as a stack, `run_of` and the
  /// StackId as `first`.
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

/// Where a key was found.
enum class Scope : std::uint8_t { snapshot, trace, frame, block, segment, annotation, settings };

/// What a snapshot has beyond what is known here: counted, never fatal. Not thread-safe.
class UnknownCounts {
 public:
  void key(Scope scope, PickleValue key) {
    ++keys_[std::uint64_t{static_cast<std::uint8_t>(scope)} << 32 | id_of(key)];
  }
  void action(PickleValue action) { ++actions_[id_of(action)]; }

  /// "trace.foo" → how many.
  [[nodiscard]] std::map<std::string, std::uint64_t> keys(const TextTable& texts) const {
    static constexpr std::string_view kScopes[] = {"snapshot", "trace",      "frame",   "block",
                                                   "segment",  "annotation", "settings"};
    std::map<std::string, std::uint64_t> named;
    for (const auto& [key, count] : keys_) {
      named[std::string(kScopes[key >> 32]) + "." + text_of(texts, static_cast<std::uint32_t>(key))] += count;
    }
    return named;
  }
  [[nodiscard]] std::map<std::string, std::uint64_t> actions(const TextTable& texts) const {
    std::map<std::string, std::uint64_t> named;
    for (const auto& [text, count] : actions_) named[text_of(texts, text)] += count;
    return named;
  }

 private:
  static constexpr std::uint32_t kNoText = 0xFFFF'FFFF;

  static std::uint32_t id_of(PickleValue value) { return value.tag() == Tag::text ? value.id() : kNoText; }
  static std::string text_of(const TextTable& texts, std::uint32_t text) {
    return text == kNoText ? "(no text)" : std::string(texts[text]);
  }

  std::unordered_map<std::uint64_t, std::uint64_t> keys_;
  std::unordered_map<std::uint32_t, std::uint64_t> actions_;
};

}  // namespace tidemark::pytorch
