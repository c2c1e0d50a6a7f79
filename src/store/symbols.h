// Names of the places that stacks are made of, of native ones from the symbol tables of ELF files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/definitions.h"

namespace tidemark {

/// Reads .symtab, or .dynsym of a stripped file, through a mapping: only the pages that are needed are read, so that
/// libraries of hundreds of megabytes open in milliseconds. Read-only after opening, but not thread-safe.
class ElfSymbols {
 public:
  /// `build_id` is hex, as recorded; empty if the recorded file had none. Fails, with a reason, for anything except a
  /// regular ELF file with that build-id and with function symbols.
  static Result<std::unique_ptr<ElfSymbols>> open(const std::string& path, const std::string& build_id);
  ~ElfSymbols();
  ElfSymbols(const ElfSymbols&) = delete;
  ElfSymbols& operator=(const ElfSymbols&) = delete;

  /// Demangled name of the function that covers `address`, in the numbering of the file's symbol table.
  [[nodiscard]] std::optional<std::string> function_at(std::uint64_t address) const;

 private:
  struct Impl;
  explicit ElfSymbols(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A place as people read it. Text is as recorded or as found in ELF files: not yet safe to print.
struct FrameName {
  Location::Kind kind = Location::Kind::python;  ///< python or native
  std::string function;    ///< "Linear.forward"; native: demangled, or "libfoo.so+0x1234" without a symbol
  std::string file;        ///< Python: source file. Native: path of the ELF file. May be empty
  std::uint32_t line = 0;  ///< 0 = unknown; for native code only known in imported files
  CompiledGraph graph = CompiledGraph::none;  ///< as in Location
  std::string source_nodes = {};              ///< as in Location
  bool is_module = false;  ///< python: the call of a torch.nn.Module, with its path as `function`; without a file
};

/// Why native frames of a file have no names.
struct MissingSymbols {
  std::string path;
  std::optional<std::string> error;  ///< reason why the file cannot be read; nullopt: it has no symbol at these
                                     ///< addresses
  std::uint64_t locations = 0;       ///< number of requested places of the file without a name
};

/// The callees of this frame are the stack of the forward side of an autograd node, or the node itself.
inline constexpr std::string_view kBackwardFrame = "(backward)";

/// Locations of a stack from the outermost frame to the innermost; empty for an invalid id. Also ends if a damaged
/// stack leads back to itself.
[[nodiscard]] std::vector<LocationId> frames_of(const Definitions& definitions, StackId stack);

/// Names Locations, opening ELF files only when one of their places is requested. Not thread-safe (it caches). The
/// Definitions must outlive it and not grow.
class Symbols {
 public:
  explicit Symbols(const Definitions& definitions);

  /// Valid as long as the Symbols.
  const FrameName& name(LocationId location);
  [[nodiscard]] std::vector<LocationId> frames(StackId stack) const { return frames_of(definitions_, stack); }
  /// Missing symbols of the files requested so far, by path.
  [[nodiscard]] std::vector<MissingSymbols> missing() const;

 private:
  struct Module {
    bool tried = false;
    std::unique_ptr<ElfSymbols> symbols;
    std::optional<std::string> error;
    std::uint64_t unnamed = 0;
  };

  [[nodiscard]] std::string text(StringId id) const;
  FrameName resolve(const Location& location);

  const Definitions& definitions_;
  std::vector<std::unique_ptr<FrameName>> names_;  // by location; null = not requested yet
  std::vector<Module> modules_;
};

/// The part of a path after its last slash.
[[nodiscard]] std::string_view base_name(std::string_view path);

}  // namespace tidemark
