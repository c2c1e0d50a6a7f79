#include "collect/recorder/live/live_message.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRoomForTheRest = 64;  // the message around the recordings

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Number>
std::optional<Number> number(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) return std::nullopt;
  return static_cast<Number>(value);
}

std::string text(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

// The latest that fit, in order; empty without any.
std::string dumps_text(const LiveDumps& dumps) {
  std::string listed;
  const std::size_t most = std::min(dumps.dumps.size(), LiveDumps::kMaxDumps);
  for (std::size_t n = 0; n < most; ++n) {
    const LiveDump& dump = dumps.dumps[dumps.dumps.size() - 1 - n];
    const std::vector<std::string> paths(
        dump.paths.begin(),
        dump.paths.begin() + static_cast<std::ptrdiff_t>(std::min(dump.paths.size(), LiveDumps::kMaxPaths)));
    const std::string entry = text_of({{"number", dump.number},
                                       {"reason", dump.reason},
                                       {"request", dump.request},
                                       {"paths", paths},
                                       {"problem", dump.problem}});
    if (listed.size() + entry.size() + 1 > LiveDumps::kMaxBytes) break;
    if (!listed.empty()) listed.insert(0, ",");
    listed.insert(0, entry);
  }
  return listed.empty() ? "" : ",\"dumps\":[" + listed + "]";
}

}  // namespace

std::string live_message(std::span<const LiveRecording> recordings, const LiveDumps& dumps) {
  const std::string rest = (dumps.keeps ? ",\"keeps\":true" : "") + dumps_text(dumps);
  std::string listed;
  std::size_t left_out = 0;
  for (const LiveRecording& recording : recordings) {
    const std::string entry = text_of({{"pid", recording.pid},
                                       {"path", recording.path},
                                       {"rank", recording.rank ? Json(*recording.rank) : Json()},
                                       {"command", recording.command},
                                       {"started_wall_ns", recording.started_wall_ns},
                                       {"started_ns", recording.started_ns ? Json(*recording.started_ns) : Json()}});
    if (listed.size() + entry.size() + rest.size() + kRoomForTheRest > kMaxLiveBytes) {
      ++left_out;
      continue;
    }
    listed += (listed.empty() ? "" : ",") + entry;
  }
  return "{\"recordings\":[" + listed + "],\"left_out\":" + std::to_string(left_out) + rest + "}\n";
}

std::optional<std::vector<LiveRecording>> parse_live_message(std::string_view message) {
  if (message.size() > kMaxLiveBytes) return std::nullopt;
  const Json json = Json::parse(message, nullptr, false);
  const auto listed = json.is_object() ? json.find("recordings") : json.end();
  if (!json.is_object() || listed == json.end() || !listed->is_array()) return std::nullopt;
  std::vector<LiveRecording> recordings;
  for (const Json& entry : *listed) {
    if (!entry.is_object()) continue;
    const auto pid = number<pid_t>(entry, "pid");
    LiveRecording recording{pid.value_or(0),
                            text(entry, "path"),
                            number<std::int32_t>(entry, "rank"),
                            text(entry, "command"),
                            number<std::uint64_t>(entry, "started_wall_ns").value_or(0),
                            number<std::uint64_t>(entry, "started_ns")};
    if (pid && !recording.path.empty()) recordings.push_back(std::move(recording));
  }
  return recordings;
}

LiveDumps parse_live_dumps(std::string_view message) {
  LiveDumps dumps;
  if (message.size() > kMaxLiveBytes) return dumps;
  const Json json = Json::parse(message, nullptr, false);
  if (!json.is_object()) return dumps;
  const auto keeps = json.find("keeps");
  dumps.keeps = keeps != json.end() && keeps->is_boolean() && keeps->get<bool>();
  const auto listed = json.find("dumps");
  if (listed == json.end() || !listed->is_array()) return dumps;
  for (const Json& entry : *listed) {
    const auto count = entry.is_object() ? number<std::uint64_t>(entry, "number") : std::nullopt;
    if (!count || dumps.dumps.size() == LiveDumps::kMaxDumps) continue;
    LiveDump dump{*count, text(entry, "reason"), text(entry, "request"), {}, text(entry, "problem")};
    const auto paths = entry.find("paths");
    if (paths != entry.end() && paths->is_array()) {
      for (const Json& path : *paths) {
        if (path.is_string() && dump.paths.size() < LiveDumps::kMaxPaths) dump.paths.push_back(path.get<std::string>());
      }
    }
    dumps.dumps.push_back(std::move(dump));
  }
  return dumps;
}

std::string dump_request(std::string_view id) {
  return text_of({{"dump", id}});
}

std::optional<std::string> parse_dump_request(std::string_view message) {
  if (message.size() > kMaxDumpRequestBytes) return std::nullopt;
  const Json json = Json::parse(message, nullptr, false);
  std::string id = json.is_object() ? text(json, "dump") : "";
  return id.empty() ? std::nullopt : std::optional(std::move(id));
}

}  // namespace tidemark
