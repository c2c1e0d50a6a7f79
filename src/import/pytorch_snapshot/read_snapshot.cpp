#include "import/pytorch_snapshot/read_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/foreign_file.h"
#include "import/pytorch_snapshot/model/snapshot_builder.h"
#include "import/pytorch_snapshot/pickle/input.h"
#include "import/pytorch_snapshot/pickle/opcodes.h"
#include "import/pytorch_snapshot/pickle/unpickler.h"
#include "import/unpack.h"
#include "trace/format.h"

namespace tidemark::pytorch {
namespace {

using Bytes = std::span<const std::uint8_t>;

bool is_pickle(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == static_cast<std::uint8_t>(Opcode::proto) && bytes[1] >= kLowestProtocol &&
         bytes[1] <= kHighestProtocol;
}

bool begins_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

/// Why these bytes are no snapshot, as far as their beginning shows; empty when it may be one.
std::string foreign(Bytes bytes) {
  if (bytes.empty()) return "the file is empty";
  if (std::string other = describe_foreign_file(std::as_bytes(bytes)); !other.empty())
    return "not a PyTorch snapshot but " + other;
  if (is_pickle(bytes)) return {};
  if (begins_with(bytes, {reinterpret_cast<const char*>(format::kMagic.data()), format::kMagic.size()})) {
    return "a recording of tidemark, not a PyTorch snapshot";
  }
  if (bytes[0] == static_cast<std::uint8_t>(Opcode::proto) && bytes.size() >= 2) {
    return fmt::format("pickle protocol {} (expected {} to {})", bytes[1], kLowestProtocol, kHighestProtocol);
  }
  return fmt::format("unknown bytes, not a PyTorch snapshot (expected a pickle of protocol {} to {})", kLowestProtocol,
                     kHighestProtocol);
}

/// A packed file's checksum is at its end: a damaged file may contain a valid pickle. Returns the damage, or an empty
/// string.
std::string damage_behind(ByteStream& stream) {
  if (stream.packing().empty()) return {};
  std::array<std::byte, 4096> rest;
  while (true) {
    const auto got = stream.read(rest);
    if (!got.ok()) return got.error().message;
    if (*got == 0) return {};
  }
}

}  // namespace

bool looks_like_snapshot(std::span<const std::byte> prefix) {
  return looks_packed(prefix) || is_pickle({reinterpret_cast<const std::uint8_t*>(prefix.data()), prefix.size()});
}

Result<Snapshot> read_snapshot(std::unique_ptr<ByteStream> stored, const ReadProgress& progress) {
  auto unpacked = unpack(std::move(stored));
  if (!unpacked.ok()) return unpacked.error();
  ByteStream& stream = **unpacked;
  const std::string name =
      stream.packing().empty() ? stream.name() : fmt::format("{} (unpacked {})", stream.name(), stream.packing());

  constexpr std::size_t kEnoughToTell = 64;
  PickleInput input(stream, progress);
  input.advance(input.begin(), kEnoughToTell);
  if (!input.failure().empty()) return Error{input.failure()};
  const auto have = static_cast<std::size_t>(input.end() - input.begin());
  const std::string other = foreign({input.begin(), std::min(have, kEnoughToTell)});
  if (!other.empty()) return Error{fmt::format("{}: {}", name, other)};

  SnapshotBuilder builder(input);
  Unpickler unpickler(input, builder.tables, builder);
  const Result<PickleValue> root = unpickler.run();
  if (!input.failure().empty()) return Error{input.failure()};
  if (!root.ok()) return Error{fmt::format("{}: {}", name, root.error().message)};
  const std::string damage = damage_behind(stream);
  if (!damage.empty()) return Error{damage};
  Result<Snapshot> snapshot = builder.finish(*root);
  if (!snapshot.ok()) {
    return Error{
        fmt::format("{}: {} (the pickle ends at offset {})", name, snapshot.error().message, unpickler.offset())};
  }
  return snapshot;
}

Result<Snapshot> read_snapshot(const std::string& path, const ReadProgress& progress) {
  auto stored = open_byte_stream(path);
  if (!stored.ok()) return stored.error();
  return read_snapshot(std::move(*stored), progress);
}

}  // namespace tidemark::pytorch
