#include "recorded.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/byte_stream.h"
#include "import/unpack.h"

namespace tidemark::detectors {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr double kMilliseconds = 1e3;

Result<std::string> read_all(const std::string& path) {
  auto stored = open_byte_stream(path);
  if (!stored.ok()) return stored.error();
  auto unpacked = unpack(std::move(stored.value()));
  if (!unpacked.ok()) return unpacked.error();
  std::string text;
  std::array<std::byte, 65536> piece{};
  for (;;) {
    const auto read = unpacked.value()->read(piece);
    if (!read.ok()) return read.error();
    if (read.value() == 0) return text;
    text.append(reinterpret_cast<const char*>(piece.data()), read.value());
  }
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> values;
  for (std::size_t from = 0;;) {
    const std::size_t comma = line.find(',', from);
    values.push_back(line.substr(from, comma - from));
    if (comma == line.npos) return values;
    from = comma + 1;
  }
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> seconds(std::string_view milliseconds) {
  const auto value = number(milliseconds);
  if (!value) return std::nullopt;
  return static_cast<double>(*value) / kMilliseconds;
}

bool begin_run(const std::vector<std::string_view>& values, std::vector<LabelledRun>& runs) {
  if (values.size() != 7) return false;
  const auto limit = number(values[2]);
  const auto step = seconds(values[6]);
  if (!limit || !step) return false;
  LabelledRun& run = runs.emplace_back();
  run.kind = values[1];
  run.limit_bytes = *limit * kKiB;
  run.leaks = values[3] == "yes" ? Leaks::yes : values[3] == "no" ? Leaks::no : Leaks::undecidable;
  run.limit_at = seconds(values[4]);
  run.ran_out = run.limit_at.has_value();
  run.grows_from = seconds(values[5]).value_or(0);
  run.seconds_per_step = *step;
  return true;
}

bool add_sample(const std::vector<std::string_view>& values, std::vector<LabelledRun>& runs) {
  if (values.size() != 3 || runs.empty()) return false;
  const auto time = number(values[0]);
  const auto used = number(values[1]);
  if (!time || !used) return false;
  UsageSample sample;
  sample.time_ns = *time * 1'000'000;
  sample.used_bytes = *used * kKiB;
  if (const auto peak = number(values[2])) sample.peak_bytes = *peak * kKiB;
  runs.back().samples.push_back(sample);
  return true;
}

}  // namespace

Result<std::vector<LabelledRun>> read_recorded(const std::string& path) {
  auto text = read_all(path);
  if (!text.ok()) return text.error();
  std::vector<LabelledRun> runs;
  std::istringstream lines(text.value());
  std::string line;
  for (std::size_t count = 1; std::getline(lines, line); ++count) {
    const auto values = split(line);
    if (values.front() == "run" ? !begin_run(values, runs) : !add_sample(values, runs)) {
      return Error{fmt::format("{}:{}: not a line of a recorded run: '{}'", path, count, line)};
    }
  }
  std::erase_if(runs, [](const LabelledRun& run) { return run.samples.empty(); });
  return runs;
}

}  // namespace tidemark::detectors
