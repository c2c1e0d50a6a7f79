#include "sweep/kept_trials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/locked_file.h"
#include "base/units.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

void set(Json& object, const char* key, const std::optional<std::uint64_t>& value) {
  object[key] = value ? Json(*value) : Json(nullptr);
}

std::string line_of(const KeptTrial& trial) {
  const TrialResult& result = trial.result;
  Json object = {{"gpu", trial.gpu}, {"values", trial.values}, {"folder", trial.folder}};
  object["fits"] = result.fits ? Json(*result.fits) : Json(nullptr);
  set(object, "peak_allocated_bytes", result.peak_allocated_bytes);
  set(object, "peak_reserved_bytes", result.peak_reserved_bytes);
  set(object, "device_used_bytes", result.device_used_bytes);
  set(object, "memory_bytes", result.memory_bytes);
  object["categories"] = Json::object();
  for (const HeldByCategory& held : result.categories) {
    object["categories"][std::string(name_in(kCategoryNames, held.category))] = held.bytes;
  }
  object["out_of_memory"] = result.out_of_memory;
  object["uncertain"] = result.uncertain;
  object["failure"] = result.failure;
  object["duration_ns"] = result.duration_ns;
  object["host_bytes"] = result.host_bytes;
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Throws if it is not a size.
std::uint64_t number_at(const Json& object, const std::string& key) {
  return object.at(key).get_ref<const Json::number_unsigned_t&>();
}

void take(const Json& object, const char* key, std::optional<std::uint64_t>& value) {
  if (!object.at(key).is_null()) value = number_at(object, key);
}

constexpr std::string_view kTrials = "trials/";

constexpr std::size_t kMaxNumber = 999'999'999;

// Whether it is the name of a trial's folder: "trials/0007". Another one may lead anywhere.
bool is_folder(std::string_view name) {
  if (!name.starts_with(kTrials)) return false;
  const auto number = parse_number<std::size_t>(name.substr(kTrials.size()));
  return number && *number <= kMaxNumber;
}

// nullopt if the line is not a trial.
std::optional<KeptTrial> trial_of(const std::string& line) {
  constexpr std::size_t kMaxLineBytes = std::size_t{8} << 20;
  if (line.size() > kMaxLineBytes) return std::nullopt;
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  try {
    KeptTrial trial;
    TrialResult& result = trial.result;
    trial.gpu = object.at("gpu");
    trial.values = object.at("values").get<std::vector<std::string>>();
    trial.folder = object.at("folder");
    if (!object.at("fits").is_null()) result.fits = object.at("fits").get<bool>();
    take(object, "peak_allocated_bytes", result.peak_allocated_bytes);
    take(object, "peak_reserved_bytes", result.peak_reserved_bytes);
    take(object, "device_used_bytes", result.device_used_bytes);
    take(object, "memory_bytes", result.memory_bytes);
    const auto held = object.find("categories");  // not in folders of earlier versions
    for (const EnumName<Category>& entry : kCategoryNames) {
      const std::string name(entry.name);
      if (held == object.end() || !held->contains(name)) continue;
      result.categories.push_back({entry.value, number_at(*held, name)});
    }
    result.out_of_memory = object.at("out_of_memory");
    result.uncertain = object.at("uncertain").get<std::vector<std::string>>();
    result.failure = object.at("failure");
    result.duration_ns = number_at(object, "duration_ns");
    result.host_bytes = number_at(object, "host_bytes");
    if (!is_folder(trial.folder)) return std::nullopt;
    return trial;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Far more than all trials of a sweep take.
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

Result<std::string> contents_of(int fd) {
  std::string contents;
  std::string part(1 << 16, '\0');
  while (true) {
    if (contents.size() > kMaxFileBytes) return Error{"larger than 64 MiB, which no sweep writes"};
    const ssize_t got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(contents.size()));
    if (got == 0) return contents;
    if (got < 0) return Error{std::strerror(errno)};
    contents.append(part, 0, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<KeptTrials> KeptTrials::open(const std::string& folder, const std::string& common) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{fmt::format("{}: cannot be created: {}", folder, error.message())};
  KeptTrials kept;
  kept.path_ = folder + "/trials.jsonl";
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  kept.fd_ = ScopedFd(::open(kept.path_.c_str(), kFlags, 0666));
  if (!kept.fd_) return Error{fmt::format("{}: cannot be written: {}", kept.path_, std::strerror(errno))};
  if (try_lock(kept.fd_) == LockState::taken) return Error{fmt::format("{}: another sweep is under way there", folder)};
  if (const auto read = kept.read(common); !read) return read.error();
  return kept;
}

Result<void> KeptTrials::read(const std::string& common) {
  const auto contents = contents_of(fd_.get());
  if (!contents) return Error{fmt::format("{}: cannot be read: {}", path_, contents.error().message)};
  const std::string first = contents->substr(0, contents->find('\n'));
  if (first != common && !(first == *contents && common.starts_with(first))) {
    return Error{
        fmt::format("{}: holds trials of another program, or with other options; name another folder with -o", path_)};
  }
  std::size_t at = 0;
  std::size_t lines = 0;
  for (std::size_t end = 0; (end = contents->find('\n', at)) != std::string::npos; at = end + 1) {
    if (++lines == 1) continue;
    auto trial = trial_of(contents->substr(at, end - at));
    if (!trial) {
      return Error{fmt::format("{}: line {} is damaged; remove that line, and its trial is run again", path_, lines)};
    }
    folders_.insert(trial->folder);
    trials_.push_back(std::move(*trial));
  }
  if (at < contents->size() && ::ftruncate(fd_.get(), static_cast<off_t>(at)) != 0) {
    return Error{fmt::format("{}: cannot be written: {}", path_, std::strerror(errno))};
  }
  return at == 0 ? write_line(common) : Result<void>();
}

std::string KeptTrials::new_folder() {
  std::string folder;
  do {
    number_ = number_ % kMaxNumber + 1;
    folder = fmt::format("{}{:04}", kTrials, number_);
  } while (folders_.contains(folder));
  return folder;
}

Result<void> KeptTrials::append(KeptTrial trial) {
  auto written = write_line(line_of(trial));
  if (!written) return written;
  folders_.insert(trial.folder);
  trials_.push_back(std::move(trial));
  return written;
}

Result<void> KeptTrials::write_line(const std::string& line) {
  const std::string whole = line + "\n";
  const ssize_t written = ::write(fd_.get(), whole.data(), whole.size());
  if (written == static_cast<ssize_t>(whole.size()) && ::fsync(fd_.get()) == 0) return {};
  return Error{
      fmt::format("{}: cannot be written: {}", path_, written < 0 ? std::strerror(errno) : "the disk is full")};
}

}  // namespace tidemark
