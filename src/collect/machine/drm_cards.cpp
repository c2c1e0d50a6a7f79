#include "collect/machine/drm_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "collect/machine/files.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

bool all_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Names in a folder; empty if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

/// The last part of a symbolic link's target.
std::string link_name(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.filename().string();
}

/// "drm-memory-vram:\t123 KiB" in bytes; no unit means bytes.
std::optional<std::uint64_t> size_after(const std::string& text, const std::string& key) {
  const auto number = number_after(text, key + ":");
  if (!number) return std::nullopt;
  const std::size_t start = text.find(key + ":");
  const std::string line = text.substr(start, text.find('\n', start) - start);
  if (line.find("KiB") != std::string::npos) return *number << 10;
  return line.find("MiB") != std::string::npos ? *number << 20 : *number;
}

bool has_line(const std::string& text, const std::string& key, const std::string& value) {
  const std::size_t at = text.find(key);
  return at != std::string::npos &&
         trimmed(text.substr(at + key.size(), text.find('\n', at) - at - key.size())) == value;
}

}  // namespace

std::vector<DrmCard> find_cards(const std::string& root, std::uint64_t vendor) {
  const std::string folder = root + "/sys/class/drm";
  std::vector<DrmCard> cards;
  for (const std::string& name : names_in(folder)) {
    if (name.rfind("card", 0) != 0 || !all_digits(name.substr(4))) continue;  // card0-HDMI-A-1 is a connector
    DrmCard card;
    card.folder = fmt::format("{}/{}/device", folder, name);
    const std::string said = trimmed(read_file(card.folder + "/vendor").value_or(""));
    if (said != fmt::format("0x{:04x}", vendor)) continue;
    card.number = static_cast<std::uint32_t>(leading_number(name.substr(4)).value_or(0));
    card.bus_id = link_name(card.folder);
    card.driver = link_name(card.folder + "/driver");
    cards.push_back(std::move(card));
  }
  std::sort(cards.begin(), cards.end(), [](const DrmCard& a, const DrmCard& b) { return a.number < b.number; });
  return cards;
}

std::vector<SampledProcess> card_processes(const std::string& root, const std::string& bus_id,
                                           const std::vector<std::string>& keys) {
  std::vector<SampledProcess> processes;
  for (const std::string& entry : names_in(root + "/proc")) {
    if (!all_digits(entry)) continue;
    const std::string folder = fmt::format("{}/proc/{}", root, entry);
    std::set<std::string> clients;
    SampledProcess process;
    for (const std::string& descriptor : names_in(folder + "/fd")) {
      // Reading fdinfo of every file would be expensive; a GPU's files are character devices below /dev/dri.
      std::error_code error;
      const std::string target = fs::read_symlink(fmt::format("{}/fd/{}", folder, descriptor), error).string();
      if (error || target.rfind("/dev/dri/", 0) != 0) continue;
      const std::string text = read_file(fmt::format("{}/fdinfo/{}", folder, descriptor)).value_or("");
      if (!has_line(text, "drm-pdev:", bus_id)) continue;
      process.pid = static_cast<std::int64_t>(leading_number(entry).value_or(0));
      const auto client = number_after(text, "drm-client-id:");
      if (client && !clients.insert(std::to_string(*client)).second) continue;  // a duplicate of a file seen before
      for (const std::string& key : keys) {
        if (const auto bytes = size_after(text, key)) process.bytes = process.bytes.value_or(0) + *bytes;
      }
    }
    if (process.pid > 0) processes.push_back(process);
  }
  return processes;
}

Result<void> check_card(const DrmCard& card, const char* vendor) {
  std::error_code error;
  if (fs::exists(card.folder + "/vendor", error)) return {};
  return Error{fmt::format("{} GPU {} ({}) is gone from /sys; `dmesg` may say why", vendor, card.number, card.bus_id)};
}

}  // namespace tidemark
