// Reads torch.cuda.memory._snapshot() files: pickles, which are programs. Nothing in them is ever executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "import/pytorch_snapshot/model/snapshot.h"

namespace tidemark::pytorch {

/// Called repeatedly with (bytes done, total bytes) of the file; the total is 0 if it is unknown.
using ReadProgress = std::function<void(std::uint64_t, std::uint64_t)>;

/// Reads the snapshot in a file, plain or packed (.gz, .xz, .zst; the name does not matter). Accepts pickles of
/// Python's or PyTorch's own pickler, protocols 2 to 5. Memory is bounded by the actual content of the file: some 40
/// bytes for each trace entry and 4 for each number of the pickle's memo. Errors name the file and, for a pickle, the
/// offset in its unpacked bytes; for damage to a packed file, the offset in the file. Thread-safe.
Result<Snapshot> read_snapshot(const std::string& path, const ReadProgress& progress = {});

/// The same for bytes from any source. Bytes after the pickle are ignored, unless the bytes are packed: then they are
/// read to their end, where the checksum is.
Result<Snapshot> read_snapshot(std::unique_ptr<ByteStream> stored, const ReadProgress& progress = {});

/// Whether a file that begins so (16 bytes are enough) may be a snapshot: a pickle, or a packed file. Recordings and
/// text are not.
[[nodiscard]] bool looks_like_snapshot(std::span<const std::byte> prefix);

}  // namespace tidemark::pytorch
