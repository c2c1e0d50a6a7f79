// Small files of /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tidemark {

/// The whole file, at most 1 MiB of it; std::nullopt if it cannot be read.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// The text without surrounding white space.
[[nodiscard]] std::string trimmed(const std::string& text);

/// The unsigned decimal number at the start of a text; std::nullopt if there is none, or it does not fit.
[[nodiscard]] std::optional<std::uint64_t> leading_number(const std::string& text);

/// The number in a file that holds only a number.
[[nodiscard]] std::optional<std::uint64_t> read_number(const std::string& path);

/// The number after `key` at the start of a line: "MemTotal:   1024 kB", "oom_kill 0".
[[nodiscard]] std::optional<std::uint64_t> number_after(const std::string& text, const std::string& key);

}  // namespace tidemark
