#include "import/open.h"

#include <array>
#include <cstddef>
#include <fstream>
#include <span>

#include "base/locked_file.h"
#include "base/regular_file.h"
#include "import/pytorch_snapshot/load_snapshot.h"
#include "import/pytorch_snapshot/read_snapshot.h"

namespace tidemark {
namespace {

/// Functions of a format. A new format is a folder beside pytorch_snapshot and a line in kFormats.
struct Format {
  bool (*recognizes)(std::span<const std::byte> first_bytes);
  Result<Overview> (*load_overview)(const std::string& path, const Progress& progress, const SampleConsumer& samples);
  Result<Store> (*load_store)(const std::string& path, const Progress& progress);
};

/// The first that recognizes a file reads it; the last recognizes all.
constexpr Format kFormats[] = {
    {pytorch::looks_like_snapshot,
     [](const std::string& path, const Progress& progress, const SampleConsumer& /*there are none*/) {
       return pytorch::load_overview(path, progress);
     },
     pytorch::load_store},
    {[](std::span<const std::byte>) { return true; }, load_overview, load_store},
};

const Format& format_of(const std::string& path) {
  std::array<char, 64> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const auto first = std::as_bytes(std::span(bytes)).first(static_cast<std::size_t>(file.gcount()));
  const Format* format = kFormats;
  while (!format->recognizes(first)) ++format;
  return *format;
}

// A recording without an end that its recorder still writes: the recorder holds the lock of the file.
void note_recorder(const std::string& path, Overview& overview) {
  if (overview.definitions.end || overview.source.kind != SourceKind::recording) return;
  const auto file = open_regular_file(path);
  overview.source.growing = file && probe_lock(*file) == LockState::taken;
}

}  // namespace

Result<Overview> open_overview(const std::string& path, const Progress& progress, const SampleConsumer& samples) {
  auto overview = format_of(path).load_overview(path, progress, samples);
  if (overview) note_recorder(path, *overview);
  return overview;
}

Result<Store> open_store(const std::string& path, const Progress& progress) {
  auto store = format_of(path).load_store(path, progress);
  if (store) note_recorder(path, *store);
  return store;
}

}  // namespace tidemark
