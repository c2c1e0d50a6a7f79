// Function names of one ELF file, from its symbol table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// Reads .symtab, or .dynsym of a stripped file, through a mapping: only the pages that are needed are read, so that
/// libraries of hundreds of megabytes open in milliseconds. Read-only after opening, but not thread-safe.
class ElfSymbols {
 public:
  /// `build_id` is hex, as recorded; empty when the recorded file had none. Fails, saying why, for anything but a
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

}  // namespace tidemark
