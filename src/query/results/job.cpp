// A job on several machines.
#include "query/words/job.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "query/results/machine_results.h"
#include "query/results/monitors.h"

namespace tidemark {
namespace {

/// The numbers of a risk, without its explanation; null: not assessed.
struct RiskNumbers {
  const std::optional<RiskAssessment>* risk = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const RiskNumbers& of) {
  const bool known = of.risk != nullptr && of.risk->has_value();
  static const RiskAssessment kNone;
  const RiskAssessment& risk = known ? **of.risk : kNone;
  v.field("risk_level", when(known, named<kRiskLevelNames>(risk.level)), "null: not assessed");
  v.field("confidence", known ? risk.confidence : std::nullopt,
          "how often such assessments were right on labelled runs");
  v.field("growth_rate_mb_per_sec",
          when(known && risk.pattern != UsagePattern::unknown, in_mib(risk.growth_bytes_per_second)),
          "of the running peak");
  v.field("seconds_to_limit", known ? risk.seconds_to_limit : std::nullopt, "null: it is not reached");
  v.field("steps_to_limit", known ? risk.steps_to_limit : std::nullopt, "null also where steps are not known");
}

/// A rank by its place, in lists of ranks that something is said of.
struct RankPlace {
  const JobReport* report = nullptr;
  std::optional<std::size_t> rank;
};
template <typename Visitor>
void describe(Visitor& v, const RankPlace& of) {
  const JobReport& report = value_or_none(of.report);
  const JobRank& rank = value_or_none(of.rank ? &report.ranks[*of.rank] : nullptr);
  v.field("rank", rank.rank, "null: the process has none");
  v.field("node", when(of.rank.has_value(), [&] { return report.nodes[rank.node].name; }));
  v.field("pid", when(of.rank.has_value(), rank.pid));
}

std::optional<std::string> device_key(const JobReport& report, std::size_t node, std::optional<std::size_t> device) {
  return device ? std::optional(report.nodes[node].devices[*device].key) : std::nullopt;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const JobDevice& device) {
  v.type("JobDevice", "A device of a node, or its host.");
  v.field("device", known_text(device.key), "its key; null: the host");
  v.field("name", known_text(device.name));
  v.field("lost", known_text(device.lost), "why nothing more comes of it");
  v.field("total_bytes", device.total_bytes);
  v.field("used_bytes", device.used_bytes, "by all processes");
  v.field("peak_bytes", device.peak_bytes, "since its agent was started");
  v.field("limit_bytes", device.limit_bytes, "what programs can have of it");
  v.part(RiskNumbers{&device.risk});
}

template <typename Visitor>
void describe(Visitor& v, const JobNode& node) {
  v.type("JobNode", "A machine of the job.");
  v.field("node", node.name);
  v.field("condition", named<kNodeConditionNames>(node.condition),
          "old: not heard for a while; left: its agent was stopped");
  v.field("age_seconds", node.age_seconds, "of its state");
  v.field("rank_count", node.ranks);
  v.field("devices", node.devices);
  v.field("host", node.host);
  v.field("has_rival", node.has_rival, "another agent sends under the same name");
  v.field("problems", node.problems, "drivers that do not work, ranks of other jobs: sentences");
  v.field("message_count", node.taken);
  v.field("lost_message_count", node.lost);
  v.field("repeated_message_count", node.repeated, "duplicates, and late ones");
  v.field("refused_message_count", node.refused, "damaged, or too many at a time");
}

template <typename Visitor>
void describe(Visitor& v, const JobRank& rank, const JobReport& report) {
  v.type("JobRank", "A process that runs the job's program, with its memory on the device that it uses most.");
  v.field("rank", rank.rank, "null: the process has none");
  v.field("node", [&] { return report.nodes[rank.node].name; });
  v.field("role", known_text(rank.role), "TIDEMARK_ROLE of its environment, else torchrun's role");
  v.field("local_rank", rank.local_rank);
  v.field("world_size", rank.world_size);
  v.field("pid", rank.pid);
  v.field("process", known_text(rank.process));
  v.field("current", rank.current, "false: its node is old or has left; the values are the latest ones");
  v.field(
      "device", [&] { return device_key(report, rank.node, rank.device); }, "its key; null: none");
  v.field("allocated_bytes", rank.allocated_bytes, "null: the process is not recorded");
  v.field("reserved_bytes", rank.reserved_bytes);
  v.field("used_bytes", rank.used_bytes, "of the device, by the driver; on a machine without GPUs its resident memory");
  v.field("other_devices_bytes", rank.other_devices_bytes, "on the node's other devices");
  v.field("limit_bytes", rank.limit_bytes, "what it has and what is free, as long as others take no more");
  v.part(RiskNumbers{&rank.risk});
  v.field("step_count", rank.steps, "training steps since its agent was started");
  v.field("step_seconds", rank.step_seconds, "over the last two minutes");
}

template <typename Visitor>
void describe(Visitor& v, const PartDifference& part) {
  v.type("PartDifference", "A part of a rank's memory, compared with the median of its peers.");
  v.field("part", named<kRankPartNames>(part.part));
  v.field("category", when(part.part == RankPart::category, named<kCategoryNames>(part.category)));
  v.field("difference_bytes", part.bytes);
  v.field(
      "text", [&] { return part_text(part); }, "a clause");
}

template <typename Visitor>
void describe(Visitor& v, const RankOutlier& outlier, const JobReport& report) {
  v.type("RankOutlier", "A rank whose memory differs from that of its peers, the other ranks of its role.");
  v.part(RankPlace{&report, report.ranks.empty() ? std::nullopt : std::optional(outlier.rank)});
  v.field("measure", named<kRankMeasureNames>(outlier.measure));
  v.field("bytes", outlier.bytes);
  v.field("peer_median_bytes", outlier.peer_median_bytes);
  v.field("peer_count", outlier.peers);
  v.field("reasons", outlier.parts, "what explains it, largest first; at most three. Empty: unknown");
}

template <typename Visitor>
void describe(Visitor& v, const RankRole& role, const JobReport& report) {
  const bool known = role.known > 0;
  const auto rank_of = [&](std::size_t rank) { return known ? report.ranks[rank].rank : std::nullopt; };
  v.type("RankRole", "The memory of all current ranks of one role.");
  v.field("role", known_text(role.role), "null: of ranks without one");
  v.field("rank_count", role.count);
  v.field("known_count", role.known, "of these, whose memory is known");
  v.field("measure", named<kRankMeasureNames>(role.measure));
  v.field("min_bytes", when(known, role.min_bytes));
  v.field("median_bytes", when(known, role.median_bytes));
  v.field("max_bytes", when(known, role.max_bytes));
  v.field("min_rank", rank_of(role.min_rank));
  v.field("max_rank", rank_of(role.max_rank));
}

template <typename Visitor>
void describe(Visitor& v, const Straggler& straggler, const JobReport& report) {
  v.type("Straggler", "A rank whose steps take longer than those of its role.");
  v.part(RankPlace{&report, report.ranks.empty() ? std::nullopt : std::optional(straggler.rank)});
  v.field("step_seconds", straggler.step_seconds);
  v.field("median_seconds", straggler.median_seconds);
}

template <typename Visitor>
void describe(Visitor& v, const JobEvent& event) {
  v.type("JobEvent", "Something that happened on a node.");
  v.field("time", iso_time(event.wall_ns), "by the node's clock, UTC");
  v.field("kind", named<kJobEventKindNames>(event.kind));
  v.field("node", event.node);
  v.field("rank", event.rank, "null: of no rank");
  v.field("pid", event.pid);
  v.field("device", known_text(event.device), "its key; null: of none");
  v.field("text", event.text, "a clause");
}

namespace {

struct JobFacts {};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const JobReport& report, const JobFacts& /*tag*/) {
  const bool known = report.risk.has_value();
  const auto risk = known ? std::optional(report.risk->risk) : std::nullopt;
  const auto current = [](const JobNode& node) { return node.condition == NodeCondition::current; };
  v.type("Job", "The job as a whole; risk, roles, outliers and stragglers are of nodes whose state is current.");
  v.field("name", report.name);
  v.field(
      "verdict", [&] { return job_verdict(report); }, "a sentence");
  v.part(RiskNumbers{&risk});
  v.field("deciding_rank", known && report.risk->rank ? report.ranks[*report.risk->rank].rank : std::nullopt,
          "whose memory decides the risk; null: no rank's");
  v.field("deciding_node", when(known, [&] { return report.nodes[report.risk->node].name; }), "where that memory is");
  v.field(
      "deciding_device",
      [&] { return known ? device_key(report, report.risk->node, report.risk->device) : std::nullopt; },
      "its key; null: the host");
  v.field("node_count", report.nodes.size());
  v.field("current_node_count", std::count_if(report.nodes.begin(), report.nodes.end(), current));
  v.field("rank_count", report.ranks.size());
  v.field("world_size", report.world_size, "as all ranks say");
  v.field("roles", in(report.roles, report));
  v.field("outliers", in(report.outliers, report), "largest difference first");
  v.field("step_seconds", report.step_seconds, "the median of the ranks");
  v.field("stragglers", in(report.stragglers, report), "slowest first");
}

template <typename Visitor>
void describe(Visitor& v, const CommandRank& rank) {
  v.type("CommandRank", "What a rank did on a command.");
  v.field("rank", rank.rank, "null: the process has none");
  v.field("node", rank.node);
  v.field("pid", rank.pid);
  v.field("ok", rank.ok, "whether it did it; of a refused command, whether it could");
  v.field("text", rank.text, "what it did, or why not: a clause");
}

template <typename Visitor>
void describe(Visitor& v, const CommandReport& report) {
  v.type("CommandReport", "A command to the ranks of a job, and how it ended.");
  v.field("command", report.command);
  v.field("time", iso_time(report.wall_ns), "when the coordinator got it, UTC");
  v.field("who", report.who, "as the program that sent it says");
  v.field("state", named<kCommandStateNames>(report.state),
          "refused: no rank has begun; failed: not all ranks have done it");
  v.field("reason", known_text(report.reason), "why it was refused, or failed; null: it was done");
  v.field("ranks", report.ranks, "those that it is for");
}
TIDEMARK_DESCRIBED(CommandReport);

template <typename Visitor>
void describe(Visitor& v, const JobReport& report) {
  v.type("JobReport", "The memory of a job on several machines.");
  v.field("timestamp", iso_time(report.now_wall_ns), "UTC");
  v.field("command", one_of<"distributed">("distributed"));
  v.field("started", iso_time(report.began_wall_ns));
  v.field("duration_seconds", report.duration_seconds);
  v.field("ended_by", named<kWatchEndNames>(report.end));
  v.field(
      "notes", [&] { return job_notes(report); }, "what was not seen and why: sentences");
  v.field("job", in(report, JobFacts()));
  v.field("nodes", report.nodes, "by name");
  v.field("ranks", in(report.ranks, report), "by rank");
  v.field("events", report.events, "the latest 256, in the order in which the coordinator got them");
  v.field("earlier_event_count", report.earlier_events, "before those");
}
TIDEMARK_DESCRIBED(JobReport);

}  // namespace tidemark
