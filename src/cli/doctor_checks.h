// What can be recorded on this machine and in this environment, one check after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::cli {

struct Check {
  enum class Status : std::uint8_t { ok, warning, problem };
  const char* name;  ///< stable, for machines
  Status status = Status::ok;
  std::string text;    ///< what is so
  std::string advice;  ///< what to do about it; empty when there is nothing to do
};

/// `program`: what would be run; empty: python3. Runs the interpreter that it starts.
[[nodiscard]] std::vector<Check> examine_machine(const std::string& program);

}  // namespace tidemark::cli
