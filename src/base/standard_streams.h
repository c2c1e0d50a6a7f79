// stdin, stdout and stderr of the commands, all of which somebody may have closed, filled up or walked away from.
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

/// Writes up to four parts to stderr, in one piece where the kernel allows it. What cannot be written is dropped: there
/// is nobody to tell.
void write_stderr(std::initializer_list<std::string_view> parts) noexcept;

/// "tidemark: MESSAGE" as a line on stderr.
void say(std::string_view message) noexcept;

/// From now on write_stderr() waits at most so long, in all, for a pipe or terminal that nobody reads to have room, and
/// drops what does not fit. For processes that others depend on. One thread at a time.
void wait_for_stderr_at_most(std::chrono::milliseconds in_all) noexcept;
/// How many calls of write_stderr() dropped something for that reason.
[[nodiscard]] std::uint64_t dropped_messages() noexcept;

/// Writes to stdout through a buffer; flush_stdout() empties it. The error says why stdout cannot be written.
Result<void> write_stdout(std::string_view bytes);
Result<void> flush_stdout();

}  // namespace tidemark
