// The torch.nn.Module objects of one process: which of its addresses is which object at which time, and what that is
// called.
//
// The lanes of a process are drained one after the other, so what they tell does not come in the order in which it
// happened. Time is told in generations: a death of a module that has a name begins one. A generation is known when all
// deaths up to it have come. Of what is of a known generation it is certain which object it means. Whatever is of a
// later one gets an object of its own for now, and a name as far as is known; what comes later corrects the name.
//
// Programs build models again and again, for weeks: of an address the latest lives are remembered, and of the addresses
// that are free again the latest ones.
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

/// Not thread-safe. All of it comes from the recorded process, so any number may come. Memory is bounded by the number
/// of modules that are alive at a time.
class NnModules {
 public:
  static constexpr std::size_t kMaxLives = 16;  ///< of an address
  static constexpr std::size_t kMaxDead = 65'536;

  /// What a module was called at some time.
  struct Name {
    std::uint64_t ticks = 0;       ///< when it was told; the latest counts
    std::uint64_t generation = 0;  ///< likewise
    std::uint64_t root = 0;        ///< address of the outermost module below which it was found
    StringId path;
    StringId type;
  };

  /// The object at `address` in that generation.
  NnModuleId id(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer);

  void name(std::uint64_t address, const Name& name, RecordingWriter& writer);

  /// The object at `address` died; the generation is that which began then.
  void died(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer);

  /// Has `definitions` keep all modules and their names.
  void keep(KeptDefinitions& definitions) const;

 private:
  struct Object {
    std::uint64_t generation = 0;  ///< in which it was met first
    NnModuleId id;
    std::optional<NnModuleName> written = {};
  };
  struct Address {
    std::vector<std::uint64_t> deaths;  ///< generations that begin with one of its deaths, in their order
    std::vector<Object> objects;
    std::vector<Name> names;
    std::uint64_t remembered_from = 0;    ///< generation
    std::optional<NnModuleId> forgotten;  ///< all that was there before
  };

  /// How many deaths came before: two generations of one life mean the same object, as far as is known.
  static std::size_t life(const Address& at, std::uint64_t generation);
  NnModuleId object(std::uint64_t address, std::uint64_t generation, RecordingWriter& writer);
  void write_names(Address& at, RecordingWriter& writer);
  static void forget_lives(Address& at);
  void forget_dead();

  std::unordered_map<std::uint64_t, Address> addresses_;
  std::uint64_t known_ = 0;                                   ///< the latest known generation
  std::set<std::uint64_t> beyond_;                            ///< generations that began after the known ones
  std::deque<std::pair<std::uint64_t, std::uint64_t>> dead_;  ///< the latest deaths: address, generation
};

}  // namespace tidemark
