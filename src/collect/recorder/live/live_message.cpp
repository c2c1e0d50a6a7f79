#include "collect/recorder/live/live_message.h"

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
  if (found == entry.end() || !found->is_number_integer()) return std::nullopt;
  const auto value = found->is_number_unsigned() ? found->get<std::uint64_t>() : ~std::uint64_t{0};
  if (value > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) return std::nullopt;
  return static_cast<Number>(value);
}

std::string text(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string live_message(std::span<const LiveRecording> recordings) {
  std::string listed;
  std::size_t left_out = 0;
  for (const LiveRecording& recording : recordings) {
    const std::string entry = text_of({{"pid", recording.pid},
                                       {"path", recording.path},
                                       {"rank", recording.rank ? Json(*recording.rank) : Json()},
                                       {"command", recording.command},
                                       {"started_wall_ns", recording.started_wall_ns},
                                       {"started_ns", recording.started_ns ? Json(*recording.started_ns) : Json()}});
    if (listed.size() + entry.size() + kRoomForTheRest > kMaxLiveBytes) {
      ++left_out;
      continue;
    }
    listed += (listed.empty() ? "" : ",") + entry;
  }
  return "{\"recordings\":[" + listed + "],\"left_out\":" + std::to_string(left_out) + "}\n";
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

}  // namespace tidemark
