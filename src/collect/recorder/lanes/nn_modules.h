// The torch.nn.Module objects of one process: the object at each address and time, and its name.
//
// The lanes of a process are drained one after the other, so their records do not arrive in the order of time. Time is
// counted in generations: the death of a named module begins one. A generation is known once all deaths up to it have
// arrived. The object at an address in a known generation is certain. In a later generation, the address gets a new
// object for now, and the best known name; later records correct the name.
//
// Programs may build models repeatedly for weeks: only the latest lives of an address and the latest freed addresses
// are remembered.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/kept_definitions.h"
#include "trace/recording_writer.h"

namespace tidemark {

/// Not thread-safe. All arguments come from the recorded process and may have any value. Memory is bounded by the
/// number of modules that are alive at a time.
class NnModules {
 public:
  static constexpr std::size_t kMaxLives = 16;  ///< of an address
  static constexpr std::size_t kMaxDead = 65'536;

  /// The name of a module at some time.
  struct Name {
    std::uint64_t ticks = 0;       ///< when it was recorded; the latest counts
    std::uint64_t generation = 0;  ///< generation at that time
    std::uint64_t root = 0;        ///< address of the outermost module that contains it
    StringId path;
    StringId type;
  };

  /// The object at `address` in that generation.
  NnModuleId id(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer);

  void name(std::uint64_t address, const Name& name, RecordingWriter& writer);

  /// The object at `address` died, which began `generation`.
  void died(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer);

  /// Adds the definitions of all modules and their names.
  void keep(KeptDefinitions& definitions) const;

 private:
  struct Object {
    std::uint64_t generation = 0;  ///< in which it was seen first
    NnModuleId id;
    std::optional<NnModuleName> written = {};
  };
  struct Address {
    std::vector<std::uint64_t> deaths;  ///< generations that begin with one of its deaths, in their order
    std::vector<Object> objects;
    std::vector<Name> names;
    std::uint64_t remembered_from = 0;    ///< generation
    std::optional<NnModuleId> forgotten;  ///< stands for all earlier objects
  };

  /// The number of deaths before: two generations in one life mean the same object, as far as is known.
  static std::size_t life(const Address& at, std::uint64_t generation);
  NnModuleId object(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer);
  void write_names(Address& at, RecordingWriter& writer);
  static void forget_lives(Address& at);
  void forget_dead();

  std::unordered_map<std::uint64_t, Address> addresses_;
  std::uint64_t known_ = 0;                                   ///< the latest known generation
  std::set<std::uint64_t> beyond_;                            ///< generations that began after the latest known one
  std::deque<std::pair<std::uint64_t, std::uint64_t>> dead_;  ///< the latest deaths: address, generation
};

}  // namespace tidemark
