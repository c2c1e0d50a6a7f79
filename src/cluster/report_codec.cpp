#include "cluster/report_codec.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "cluster/message_coder.h"
#include "cluster/protocol.h"

namespace tidemark {

// The members of each struct, for writing and reading. Numbers are never used for another member.
template <typename Coder>
void members(Coder& coder, Interval& of) {
  coder(1, of.expected), coder(2, of.earliest), coder(3, of.latest);
}
template <typename Coder>
void members(Coder& coder, RiskAssessment& of) {
  coder(1, of.level), coder(2, of.confidence), coder(3, of.pattern), coder(4, of.used_bytes), coder(5, of.used_percent);
  coder(6, of.growth_bytes_per_second), coder(7, of.growth_error_bytes_per_second), coder(8, of.growth_seconds);
  coder(9, of.seconds_to_limit), coder(10, of.steps_to_limit), coder(11, of.sample_count), coder(12, of.span_seconds);
  coder(13, of.change_points), coder(14, of.period_seconds);
}
template <typename Coder>
void members(Coder& coder, JobDevice& of) {
  coder(1, of.key), coder(2, of.is_host), coder(3, of.name), coder(4, of.lost), coder(5, of.total_bytes);
  coder(6, of.used_bytes), coder(7, of.limit_bytes), coder(8, of.peak_bytes), coder(9, of.risk);
}
template <typename Coder>
void members(Coder& coder, JobNode& of) {
  coder(1, of.name), coder(2, of.condition), coder(3, of.age_seconds), coder(4, of.has_rival), coder(5, of.ranks);
  coder(6, of.devices), coder(7, of.host), coder(8, of.problems), coder(9, of.taken), coder(10, of.lost);
  coder(11, of.repeated), coder(12, of.refused);
}
template <typename Coder>
void members(Coder& coder, JobRank& of) {
  coder(1, of.node), coder(2, of.pid), coder(3, of.process), coder(4, of.rank), coder(5, of.local_rank);
  coder(6, of.world_size), coder(7, of.role), coder(8, of.current), coder(9, of.device), coder(10, of.allocated_bytes);
  coder(11, of.reserved_bytes), coder(12, of.used_bytes), coder(13, of.other_devices_bytes), coder(14, of.limit_bytes);
  coder(15, of.risk), coder(16, of.steps), coder(17, of.step_seconds);
  for (MessageTag category = 0; category < of.categories.size(); ++category)
    coder(32 + category, of.categories[category]);
}
template <typename Coder>
void members(Coder& coder, PartDifference& of) {
  coder(1, of.part), coder(2, of.category), coder(3, of.bytes);
}
template <typename Coder>
void members(Coder& coder, RankOutlier& of) {
  coder(1, of.rank), coder(2, of.measure), coder(3, of.bytes), coder(4, of.peer_median_bytes), coder(5, of.peers);
  coder(6, of.parts);
}
template <typename Coder>
void members(Coder& coder, RankRole& of) {
  coder(1, of.role), coder(2, of.count), coder(3, of.known), coder(4, of.measure), coder(5, of.min_bytes);
  coder(6, of.median_bytes), coder(7, of.max_bytes), coder(8, of.min_rank), coder(9, of.max_rank);
}
template <typename Coder>
void members(Coder& coder, Straggler& of) {
  coder(1, of.rank), coder(2, of.step_seconds), coder(3, of.median_seconds);
}
template <typename Coder>
void members(Coder& coder, JobRisk& of) {
  coder(1, of.risk), coder(2, of.node), coder(3, of.rank), coder(4, of.device);
}
template <typename Coder>
void members(Coder& coder, JobEvent& of) {
  coder(1, of.kind), coder(2, of.node), coder(3, of.wall_ns), coder(4, of.rank), coder(5, of.pid);
  coder(6, of.device), coder(7, of.text);
}
template <typename Coder>
void members(Coder& coder, JobReport& of) {
  coder(2, of.name), coder(3, of.began_wall_ns), coder(4, of.now_wall_ns), coder(5, of.duration_seconds);
  coder(6, of.end), coder(7, of.nodes), coder(8, of.ranks), coder(9, of.world_size), coder(10, of.risk);
  coder(11, of.roles), coder(12, of.outliers), coder(13, of.step_seconds), coder(14, of.stragglers);
  coder(15, of.events), coder(16, of.earlier_events), coder(17, of.problems), coder(18, of.refused);
}

inline bool is_known(RiskLevel value) {
  return is_in(kRiskLevelNames, value);
}
inline bool is_known(UsagePattern value) {
  return is_in(kUsagePatternNames, value);
}
inline bool is_known(NodeCondition value) {
  return is_in(kNodeConditionNames, value);
}
inline bool is_known(RankPart value) {
  return is_in(kRankPartNames, value);
}
inline bool is_known(RankMeasure value) {
  return is_in(kRankMeasureNames, value);
}
inline bool is_known(Category value) {
  return is_in(kCategoryNames, value);
}
inline bool is_known(WatchEnd value) {
  return is_in(kWatchEndNames, value);
}
inline bool is_known(JobEventKind value) {
  return is_in(kJobEventKindNames, value);
}

namespace {

constexpr std::uint32_t kReportVersion = 1;
constexpr std::size_t kMaxDecodedBytes = std::size_t{512} << 20;  // of the structs in lists

// Whether all positions are within their lists.
bool is_sound(const JobReport& report) {
  const auto has_device = [&](std::size_t node, const std::optional<std::size_t>& device) {
    return node < report.nodes.size() && (!device || *device < report.nodes[node].devices.size());
  };
  for (const JobRank& rank : report.ranks) {
    if (!has_device(rank.node, rank.device)) return false;
  }
  const auto has_rank = [&](std::size_t rank) { return rank < report.ranks.size(); };
  for (const RankOutlier& outlier : report.outliers) {
    if (!has_rank(outlier.rank)) return false;
  }
  for (const Straggler& straggler : report.stragglers) {
    if (!has_rank(straggler.rank)) return false;
  }
  for (const RankRole& role : report.roles) {
    if (role.known > 0 && (!has_rank(role.min_rank) || !has_rank(role.max_rank))) return false;
  }
  const std::optional<JobRisk>& risk = report.risk;
  return !risk || (has_device(risk->node, risk->device) && (!risk->rank || has_rank(*risk->rank)));
}

}  // namespace

std::string encode(const JobReport& report) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_uint32(1, kReportVersion);
  JobReport copy = report;  // members() are the same for reading
  MessageWriter coder(std::move(writer));
  members(coder, copy);
  return bytes;
}

Result<JobReport> decode_report(std::string_view bytes) {
  if (bytes.size() > kMaxReportBytes) return Error{fmt::format("the report has {} bytes", bytes.size())};
  JobReport report;
  try {
    protozero::pbf_reader first(bytes.data(), bytes.size());
    if (!first.next(1, protozero::pbf_wire_type::varint)) return Error{"the answer is no report"};
    if (const std::uint32_t version = first.get_uint32(); version != kReportVersion) {
      return Error{
          fmt::format("the report has version {}, expected {}: update the older of coordinator and this program",
                      version, kReportVersion)};
    }
    report = decode_members<JobReport>(bytes, kMaxDecodedBytes);
  } catch (const std::exception& error) {
    return Error{fmt::format("the report is damaged: {}", error.what())};
  }
  if (!is_sound(report)) return Error{"the report is damaged: it names a rank or device that it does not have"};
  return report;
}

std::string encode(const JobEvent& event) {
  return encode_members(event);
}

Result<JobEvent> decode_event(std::string_view bytes) {
  JobEvent event;
  try {
    event = decode_members<JobEvent>(bytes, 0);
  } catch (const std::exception& error) {
    return Error{fmt::format("an event is damaged: {}", error.what())};
  }
  if (event.node.empty()) return Error{"an event lacks its node"};
  event.node = clean_name(event.node);
  if (!event.device.empty()) event.device = clean_name(event.device);
  event.text = clean_name(event.text, JobEvent::kMaxTextBytes);
  return event;
}

}  // namespace tidemark
