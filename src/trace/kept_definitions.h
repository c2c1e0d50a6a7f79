// What a recorder knows of a process beside the file that it writes now: the definitions that later files may need.
//
// A file gets an entry when something in it first refers to it, under an id of that file. What nobody can refer to any
// more goes, so that a program which makes new stacks for weeks takes no more memory than those in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/definitions.h"
#include "trace/kept_table.h"
#include "trace/recording_writer.h"

namespace tidemark {

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

  /// From now on entries are written to `writer`, which must outlive that.
  void begin_file(RecordingWriter& writer);

  // The id in the file, which gets the entry where it does not have it yet; none for what is not known here.
  StringId in_file(StringId id);
  LocationId in_file(LocationId id);
  StackId in_file(StackId id);
  ModuleId in_file(ModuleId id);
  ThreadId in_file(ThreadId id);
  NnModuleId in_file(NnModuleId id);
  AutogradNodeId in_file(AutogradNodeId id);

  // Numbers by which the file's threads and modules, in their order there, are known in all files.
  [[nodiscard]] const std::vector<std::uint64_t>& threads_in_file() const { return threads_in_file_; }
  [[nodiscard]] const std::vector<std::uint64_t>& nn_modules_in_file() const { return nn_modules_in_file_; }

  /// Whether there is much more than after the last sweep().
  [[nodiscard]] bool has_grown() const { return count() > 2 * count_after_sweep_ + kFewEntries; }
  // What stays at the next sweep(), with all that it refers to.
  void keep(StringId id);
  void keep(LocationId id);
  void keep(StackId id);
  void keep(ModuleId id);
  void keep(ThreadId id);
  void keep(NnModuleId id);
  void keep(AutogradNodeId id);
  /// Everything else goes; its ids may be given out again.
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

  /// Marks an entry; null where there is nothing more to do.
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
