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

/// Called now and then with (bytes done, bytes in all) of the file; the latter is 0 where it is unknown.
using ReadProgress = std::function<void(std::uint64_t, std::uint64_t)>;

/// The snapshot in a file, plain or packed (.gz, .xz, .zst; whatever its name). The pickle may be of Python's or
/// PyTorch's own pickler, protocols 2 to 5. Takes memory for what the file really holds, some 40 bytes for each trace
/// entry and 4 for each number of the pickle's memo. Errors name the file and, of a pickle, the offset in its unpacked
/// bytes; of damage to a packed file, the offset there. Thread-safe.
Result<Snapshot> read_snapshot(const std::string& path, const ReadProgress& progress = {});

/// The same of bytes from anywhere. What follows the pickle does not matter, unless the bytes are packed: then they are
/// read to their end, where the checksum is.
Result<Snapshot> read_snapshot(std::unique_ptr<ByteStream> stored, const ReadProgress& progress = {});

/// Whether a file that begins so (16 bytes are enough) may be a snapshot: a pickle, or a packed file. Recordings and
/// text are not.
[[nodiscard]] bool looks_like_snapshot(std::span<const std::byte> prefix);

}  // namespace tidemark::pytorch
