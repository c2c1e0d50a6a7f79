// stdin, stdout and stderr of the commands, which may be closed, full or abandoned.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/result.h"

namespace tidemark {

/// Opens /dev/null in place of the standard descriptors that are closed, so that no file opened later becomes stdout or
/// stderr. They stay as useless as they were, and are closed again in the programs that this process executes.
void hold_closed_descriptors() noexcept;

/// Writes up to four parts to stderr, in one piece if the kernel allows it. Data that cannot be written is dropped.
void write_stderr(std::initializer_list<std::string_view> parts) noexcept;

/// "tidemark: MESSAGE" as a line on stderr.
void say(std::string_view message) noexcept;

/// Limits the total time for which write_stderr() waits for a pipe or terminal without a reader; data that does not fit
/// is dropped. For processes that others depend on. Not thread-safe.
void wait_for_stderr_at_most(std::chrono::milliseconds in_all) noexcept;
/// How many calls of write_stderr() dropped something for that reason.
[[nodiscard]] std::uint64_t dropped_messages() noexcept;

/// Writes to stdout through a buffer; flush_stdout() empties it. The error is the reason why stdout cannot be written.
Result<void> write_stdout(std::string_view bytes);
Result<void> flush_stdout();

}  // namespace tidemark
