#include "query/words/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"
#include "query/words/risks.h"

namespace tidemark {
namespace {

// "rank 3 (node b, GPU 1)", "GPU 1 of node b", "the host memory of node b".
std::string deciding_memory(const JobReport& report, const JobRisk& risk) {
  if (risk.rank) return rank_place(report, *risk.rank);
  const JobNode& node = report.nodes[risk.node];
  if (!risk.device || node.devices[*risk.device].is_host) return "the host memory of node " + shown(node.name);
  return fmt::format("{} of node {}", device_title(node.devices[*risk.device]), shown(node.name));
}

// Ranks of the nodes of one condition.
std::size_t ranks_of(const JobReport& report, NodeCondition condition) {
  std::size_t count = 0;
  for (const JobNode& node : report.nodes) count += node.condition == condition ? node.ranks : 0;
  return count;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", format_count(count), one, count == 1 ? "" : "s");
}

std::string rank_title(const JobRank& rank) {
  return rank.rank ? fmt::format("rank {}", *rank.rank) : fmt::format("process {}", rank.pid);
}

std::string device_title(const JobDevice& device) {
  return device.is_host ? "host" : shown("GPU " + device.key, 24);
}

std::string rank_place(const JobReport& report, std::size_t position) {
  const JobRank& rank = report.ranks[position];
  const JobNode& node = report.nodes[rank.node];
  const std::string device = rank.device ? ", " + device_title(node.devices[*rank.device]) : "";
  return fmt::format("{} (node {}{})", rank_title(rank), shown(node.name), device);
}

std::string heard_text(double age_seconds) {
  return age_seconds < 2 ? "now" : span_text(std::floor(age_seconds)) + " ago";
}

std::string job_verdict(const JobReport& report) {
  if (report.nodes.empty()) return "No node has sent its state yet.";
  if (!report.risk) return "Risk unknown: no memory is assessed.";
  const JobRisk& decides = *report.risk;
  const RiskAssessment& risk = decides.risk;
  const std::string memory = deciding_memory(report, decides);
  const std::string used = risk.used_percent ? fmt::format("{:.1f}% of its limit is used", *risk.used_percent) : "";
  if (risk.seconds_to_limit) {
    return fmt::format("Risk {}: {} reaches its limit {}{}.", name_of(risk.level), memory, time_to_limit_text(risk),
                       confidence_text(risk));
  }
  if (risk.pattern == UsagePattern::unknown && risk.level == RiskLevel::low) {
    return "Risk low so far: too few samples for a forecast.";
  }
  if (risk.level == RiskLevel::low) return "Risk low: no memory grows to its limit.";
  return fmt::format("Risk {}: {}: {}{}{}.", name_of(risk.level), memory, used, used.empty() ? "" : "; ",
                     pattern_text(risk));
}

std::string part_text(const PartDifference& part) {
  switch (part.part) {
    case RankPart::category: {
      std::string name(name_in(kCategoryNames, part.category));
      std::replace(name.begin(), name.end(), '_', ' ');
      return fmt::format("{} {}", signed_bytes(part.bytes), name == "unknown" ? "of unknown category" : name);
    }
    case RankPart::unused:
      return signed_bytes(part.bytes) + " reserved by PyTorch, but not allocated";
    case RankPart::outside:
      return signed_bytes(part.bytes) + " outside PyTorch's allocator (CUDA context, NCCL, libraries)";
    case RankPart::allocated:
      break;
  }
  return signed_bytes(part.bytes) + " allocated";
}

std::string outlier_text(const RankOutlier& outlier) {
  const bool above = outlier.bytes > outlier.peer_median_bytes;
  return fmt::format(
      "{} {}, {} {} the median of its {}", format_bytes(outlier.bytes), name_in(kRankMeasureNames, outlier.measure),
      format_bytes(above ? outlier.bytes - outlier.peer_median_bytes : outlier.peer_median_bytes - outlier.bytes),
      above ? "above" : "below", counted(outlier.peers, "peer"));
}

std::string event_text(const JobEvent& event) {
  constexpr std::size_t kMaxEventColumns = 300;
  const std::string node = "node " + shown(event.node);
  const std::string place = event.rank  ? fmt::format("rank {} ({})", *event.rank, node)
                            : event.pid ? fmt::format("process {} ({})", *event.pid, node)
                                        : node;
  return fmt::format("{}: {}", place, shown(event.text, kMaxEventColumns));
}

std::vector<std::string> job_notes(const JobReport& report) {
  std::vector<std::string> notes;
  for (const JobNode& node : report.nodes) {
    const std::string name = "node " + node.name;
    if (node.condition == NodeCondition::old) {
      notes.push_back(fmt::format(
          "{}: last heard {}{}", name, heard_text(node.age_seconds),
          node.ranks == 0 ? ""
                          : "; its " + counted(node.ranks, "rank") + (node.ranks == 1 ? " is" : " are") + " left out"));
    }
    if (node.has_rival) {
      notes.push_back(name + ": two agents send under this name; the later one counts. Stop one, or use --node NAME");
    }
    if (node.refused > 0) {
      notes.push_back(
          fmt::format("{}: {} refused, damaged or too many at a time", name, counted(node.refused, "message")));
    }
    for (const std::string& problem : node.problems) notes.push_back(fmt::format("{}: {}", name, problem));
    for (const JobDevice& device : node.devices) {
      if (!device.lost.empty()) notes.push_back(fmt::format("{}: {}", name, device.lost));
    }
  }
  if (report.ranks.empty() && !report.nodes.empty()) {
    notes.emplace_back(
        "no ranks: no process on a GPU has one from torchrun, srun or mpirun, and none is recorded with `tidemark "
        "run`");
  }
  if (report.refused > 0) notes.push_back(counted(report.refused, "message") + " of no known node refused");
  notes.insert(notes.end(), report.problems.begin(), report.problems.end());
  for (std::string& note : notes) note = printable(note);
  return notes;
}

std::string change_text(const JobChange& change, const JobReport& report) {
  const std::string clock = wall_clock_text(change.wall_ns);
  const std::string node = "node " + shown(change.node);
  switch (change.kind) {
    case JobChange::Kind::joined:
      return fmt::format("{} {} joined", clock, node);
    case JobChange::Kind::silent:
      return fmt::format("{} {} is not heard any more", clock, node);
    case JobChange::Kind::heard_again:
      return fmt::format("{} {} is heard again", clock, node);
    case JobChange::Kind::left:
      return fmt::format("{} {} left: its agent was stopped", clock, node);
    case JobChange::Kind::event:
      return fmt::format("{} {}", wall_clock_text(change.event.wall_ns), event_text(change.event));
    case JobChange::Kind::risk:
      break;
  }
  const std::string before = change.before ? fmt::format(" (was {})", name_of(*change.before)) : "";
  return fmt::format("{}{}: {}", clock, before, job_verdict(report));
}

std::string job_progress(const JobReport& report, std::optional<double> duration_seconds) {
  std::string text = span_text(report.duration_seconds);
  if (duration_seconds) text += " of " + span_text(*duration_seconds);
  const auto current = std::count_if(report.nodes.begin(), report.nodes.end(),
                                     [](const JobNode& node) { return node.condition == NodeCondition::current; });
  text += fmt::format("; {} on {}", counted(ranks_of(report, NodeCondition::current), "rank"),
                      counted(static_cast<std::uint64_t>(current), "node"));
  if (static_cast<std::size_t>(current) < report.nodes.size()) {
    text += fmt::format(", {} not heard", report.nodes.size() - static_cast<std::size_t>(current));
  }
  if (report.risk) text += fmt::format("; risk {}", name_of(report.risk->risk.level));
  return text;
}

}  // namespace tidemark
