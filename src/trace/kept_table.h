// A table of definitions from which entries go when nothing refers to them any more, and whose entries are written into
// a file when that first needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tidemark {

/// Ids are numbers of entries; those of entries that have gone are used again. Not thread-safe.
template <typename Value>
class KeptTable {
 public:
  struct Entry {
    Value value{};
    std::uint32_t file = 0;  ///< the last one that it was written into
    std::uint32_t file_id = 0;
    bool used = false;
    bool marked = false;
  };

  /// The entry with the id, or null when there is none.
  [[nodiscard]] Entry* find(std::uint32_t id) {
    return id < entries_.size() && entries_[id].used ? &entries_[id] : nullptr;
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t count() const { return entries_.size() - free_.size(); }

  std::uint32_t add(Value value) {
    std::uint32_t id = static_cast<std::uint32_t>(entries_.size());
    if (free_.empty()) {
      entries_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    entries_[id] = {};
    entries_[id].value = std::move(value);
    entries_[id].used = true;
    return id;
  }
  void remove(std::uint32_t id) {
    entries_[id] = {};
    free_.push_back(id);
  }
  /// Removes the entries that are not marked, telling `removed` of each before it goes, and unmarks the others.
  template <typename Removed>
  void sweep(const Removed& removed) {
    for (std::uint32_t id = 0; id < entries_.size(); ++id) {
      if (!entries_[id].used || std::exchange(entries_[id].marked, false)) continue;
      removed(id);
      remove(id);
    }
  }

 private:
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
};

/// One in which equal values are one entry. `Rules` has hash(value) and equal(value, value).
template <typename Value, typename Rules>
class InternedTable : public KeptTable<Value> {
 public:
  InternedTable() : index_(16, Hash{this}, Equal{this}) {}
  InternedTable(const InternedTable&) = delete;
  InternedTable& operator=(const InternedTable&) = delete;

  std::uint32_t intern(Value value) {
    const std::uint32_t id = this->add(std::move(value));
    const auto [entry, is_new] = index_.insert(id);
    if (!is_new) this->remove(id);
    return *entry;
  }
  void sweep() {
    KeptTable<Value>::sweep([this](std::uint32_t id) { index_.erase(id); });
  }

 private:
  struct Hash {
    const InternedTable* table;
    std::size_t operator()(std::uint32_t id) const { return Rules::hash(table->entries()[id].value); }
  };
  struct Equal {
    const InternedTable* table;
    bool operator()(std::uint32_t left, std::uint32_t right) const {
      return Rules::equal(table->entries()[left].value, table->entries()[right].value);
    }
  };

  std::unordered_set<std::uint32_t, Hash, Equal> index_;
};

}  // namespace tidemark
