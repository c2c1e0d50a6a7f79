// Names for files that are neither recordings nor PyTorch snapshots.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tidemark {

/// What a file is, by its first bytes (16 are enough), and what to do to get one that can be read: "a zip file, as
/// torch.save() writes …". Empty: it may be anything.
[[nodiscard]] std::string describe_foreign_file(std::span<const std::byte> first_bytes);

/// What to do where a pickle is no snapshot.
[[nodiscard]] std::string how_to_write_a_snapshot();

}  // namespace tidemark
