// Names for files that are neither recordings nor PyTorch snapshots.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tidemark {

/// The format of a file from its first bytes (16 are enough), and how to get a readable file instead: "a zip file, as
/// torch.save() writes …". Empty: unknown.
[[nodiscard]] std::string describe_foreign_file(std::span<const std::byte> first_bytes);

/// How to write a snapshot, for a pickle that is not one.
[[nodiscard]] std::string how_to_write_a_snapshot();

}  // namespace tidemark
