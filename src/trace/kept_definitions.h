// Definitions that a recorder keeps for a process in addition to its current file, because later files may need them.
//
// An entry is written to a file at its first reference there, under an id of that file. Entries that cannot be
// referenced any more are removed, so that a program which creates new stacks for weeks takes no more memory than for
// the stacks in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "trace/definitions.h"
#include "trace/recording_writer.h"

namespace tidemark {

/// Ids are numbers of entries; ids of removed entries are reused. Not thread-safe.
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

  /// The entry with the id, or null if there is none.
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
  /// Removes the unmarked entries, calling `removed` for each before, and unmarks the others.
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

/// A table in which equal values are one entry. `Rules` has hash(value) and equal(value, value).
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

/// Not thread-safe.
class KeptDefinitions {
 public:
  StringId string(std::string_view text) { return {strings_.intern(std::string(text))}; }
  LocationId location(const Location& location) { return {locations_.intern(location)}; }
  StackId stack(StackId parent, LocationId location) { return {stacks_.intern({parent, location})}; }
  ModuleId module(const ModuleInfo& module) { return {modules_.intern(module)}; }
  AutogradNodeId autograd_node(const AutogradNode& node) { return {autograd_nodes_.intern(node)}; }
  ThreadId thread(const ThreadInfo& thread) { return {threads_.add({thread, ++serial_})}; }
  NnModuleId nn_module(const NnModule& module) { return {nn_modules_.add({module, std::nullopt, ++serial_})}; }
  void nn_module_name(const NnModuleName& name);

  /// From now on entries are written to `writer`, which must outlive the file.
  void begin_file(RecordingWriter& writer);

  // The id in the file; adds the entry to the file if it is missing. None for an unknown id.
  StringId in_file(StringId id);
  LocationId in_file(LocationId id);
  StackId in_file(StackId id);
  ModuleId in_file(ModuleId id);
  ThreadId in_file(ThreadId id);
  NnModuleId in_file(NnModuleId id);
  AutogradNodeId in_file(AutogradNodeId id);

  // Global numbers of the file's threads and modules, in their order in the file.
  [[nodiscard]] const std::vector<std::uint64_t>& threads_in_file() const { return threads_in_file_; }
  [[nodiscard]] const std::vector<std::uint64_t>& nn_modules_in_file() const { return nn_modules_in_file_; }

  /// Whether there is much more than after the last sweep().
  [[nodiscard]] bool has_grown() const { return count() > 2 * count_after_sweep_ + kFewEntries; }
  // Keeps the entry in the next sweep(), with all its references.
  void keep(StringId id);
  void keep(LocationId id);
  void keep(StackId id);
  void keep(ModuleId id);
  void keep(ThreadId id);
  void keep(NnModuleId id);
  void keep(AutogradNodeId id);
  /// Removes everything else; its ids may be reused.
  void sweep();
  [[nodiscard]] std::size_t count() const;

 private:
  static constexpr std::size_t kFewEntries = 10'000;

  struct Thread {
    ThreadInfo info;
    std::uint64_t serial = 0;
  };
  struct Module {
    NnModule module;
    std::optional<NnModuleName> name;
    std::uint64_t serial = 0;
  };
  struct StringRules {
    static std::size_t hash(const std::string& text);
    static bool equal(const std::string& left, const std::string& right) { return left == right; }
  };
  struct LocationRules {
    static std::size_t hash(const Location& location);
    static bool equal(const Location& left, const Location& right);
  };
  struct StackRules {
    static std::size_t hash(const StackNode& node);
    static bool equal(const StackNode& left, const StackNode& right) {
      return left.parent == right.parent && left.location == right.location;
    }
  };
  struct ModuleRules {
    static std::size_t hash(const ModuleInfo& module);
    static bool equal(const ModuleInfo& left, const ModuleInfo& right) {
      return left.path == right.path && left.load_address == right.load_address && left.build_id == right.build_id;
    }
  };
  struct NodeRules {
    static std::size_t hash(const AutogradNode& node);
    static bool equal(const AutogradNode& left, const AutogradNode& right) {
      return left.type == right.type && left.forward_thread == right.forward_thread;
    }
  };

  /// Marks an entry; null if there is nothing left to do.
  template <typename Table>
  static auto* mark(Table& table, std::uint32_t id);
  [[nodiscard]] NnModuleName name_in_file(const NnModuleName& name);

  InternedTable<std::string, StringRules> strings_;
  InternedTable<Location, LocationRules> locations_;
  InternedTable<StackNode, StackRules> stacks_;
  InternedTable<ModuleInfo, ModuleRules> modules_;
  InternedTable<AutogradNode, NodeRules> autograd_nodes_;
  KeptTable<Thread> threads_;
  KeptTable<Module> nn_modules_;
  RecordingWriter* writer_ = nullptr;
  std::uint32_t file_ = 0;
  std::uint64_t serial_ = 0;
  std::size_t count_after_sweep_ = 0;
  std::vector<std::uint64_t> threads_in_file_;
  std::vector<std::uint64_t> nn_modules_in_file_;
  std::vector<StackId> chain_;  ///< of in_file(), to take no memory each time
  std::vector<NnModuleName> names_due_;
  bool writing_names_ = false;
};

}  // namespace tidemark
