// One screen for a job of any size: the verdict, outliers with their reasons, what is missing, then the distribution.
#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "query/words/job.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

Tone verdict_tone(const JobReport& report) {
  if (!report.risk) return Tone::warning;
  const RiskLevel level = report.risk->risk.level;
  return level >= RiskLevel::high ? Tone::error : level == RiskLevel::medium ? Tone::warning : Tone::heading;
}

std::string more_text(std::size_t all, std::size_t shown_count, const char* what) {
  return all > shown_count ? fmt::format("  ({} more {})\n", format_count(all - shown_count), what) : "";
}

std::string head_text(const JobReport& report) {
  std::string text = fmt::format("Job {}: {} on {}", shown(report.name), counted(report.ranks.size(), "rank"),
                                 counted(report.nodes.size(), "node"));
  if (report.world_size && *report.world_size != report.ranks.size()) {
    text += fmt::format(" (world size {})", format_count(*report.world_size));
  }
  return text + fmt::format(", watched for {}\n", span_text(report.duration_seconds));
}

std::string notes_text(const JobReport& report, const Terminal& terminal) {
  const std::vector<std::string> notes = job_notes(report);
  const std::size_t most = terminal.all ? notes.size() : terminal.rows;
  std::string text;
  for (std::size_t n = 0; n < std::min(most, notes.size()); ++n) {
    text += paint(terminal, Tone::warning, "Note: " + notes[n] + ".") + "\n";
  }
  return text + more_text(notes.size(), most, "notes");
}

std::string outliers_text(const JobReport& report, const Terminal& terminal) {
  if (report.outliers.empty()) return "";
  const std::size_t most = terminal.all ? report.outliers.size() : terminal.rows;
  std::string text = "\n" + paint(terminal, Tone::heading, "Ranks that differ from their peers") + "\n";
  for (std::size_t n = 0; n < std::min(most, report.outliers.size()); ++n) {
    const RankOutlier& outlier = report.outliers[n];
    text += fmt::format("  {}: {}\n", rank_place(report, outlier.rank), outlier_text(outlier));
    for (const PartDifference& part : outlier.parts) text += fmt::format("    {}\n", part_text(part));
    if (outlier.parts.empty()) {
      text += "    reason unknown: record the ranks with `tidemark run` for their categories\n";
    }
  }
  return text + more_text(report.outliers.size(), most, "ranks");
}

std::string role_rank(const JobReport& report, std::size_t rank) {
  return fmt::format(" ({})", rank_title(report.ranks[rank]));
}

std::string roles_text(const JobReport& report, const Terminal& terminal) {
  if (report.roles.empty()) return "";
  Columns columns({"ranks", "measure", "min", "median", "max", "role"});
  for (const RankRole& role : report.roles) {
    const std::string name = role.role.empty() ? "(none)" : shown(role.role);
    if (role.known == 0) {
      columns.add({format_count(role.count), "-", "unknown", "unknown", "unknown", name});
      continue;
    }
    columns.add({format_count(role.count), std::string(name_in(kRankMeasureNames, role.measure)),
                 format_bytes(role.min_bytes) + role_rank(report, role.min_rank), format_bytes(role.median_bytes),
                 format_bytes(role.max_bytes) + role_rank(report, role.max_rank), name});
  }
  return "\n" + paint(terminal, Tone::heading, "Memory of the ranks by role") + "\n" + columns.text(terminal, 2);
}

std::string steps_text(const JobReport& report, const Terminal& terminal) {
  if (!report.step_seconds) return "";
  std::string text = "\n" + paint(terminal, Tone::heading, "Training steps") + "\n";
  text += fmt::format("  {} a step, median of the ranks\n", span_text(*report.step_seconds));
  const std::size_t most = terminal.all ? report.stragglers.size() : terminal.rows;
  for (std::size_t n = 0; n < std::min(most, report.stragglers.size()); ++n) {
    const Straggler& straggler = report.stragglers[n];
    text +=
        fmt::format("  {} is slower: {}, {:.0f}% above the median\n", rank_place(report, straggler.rank),
                    span_text(straggler.step_seconds), (straggler.step_seconds / straggler.median_seconds - 1) * 100);
  }
  return text + more_text(report.stragglers.size(), most, "slower ranks");
}

std::string events_text(const JobReport& report, const Terminal& terminal) {
  if (report.events.empty()) return "";
  const std::size_t most = std::min(terminal.all ? report.events.size() : terminal.rows, report.events.size());
  std::string text = "\n" + paint(terminal, Tone::heading, "Latest events") + "\n";
  for (std::size_t n = report.events.size() - most; n < report.events.size(); ++n) {
    const JobEvent& event = report.events[n];
    text += fmt::format("  {} {}\n", wall_clock_text(event.wall_ns), event_text(event));
  }
  const std::uint64_t earlier = report.earlier_events + report.events.size() - most;
  return earlier == 0 ? text : text + fmt::format("  ({} earlier)\n", format_count(earlier));
}

// Of the node's devices: the fullest by its share of the limit.
const JobDevice* fullest_device(const JobNode& node) {
  const JobDevice* fullest = nullptr;
  double highest = -1;
  for (const JobDevice& device : node.devices) {
    if (!device.used_bytes || device.limit_bytes.value_or(0) == 0) continue;
    const double share = static_cast<double>(*device.used_bytes) / static_cast<double>(*device.limit_bytes);
    if (share > highest) {
      highest = share;
      fullest = &device;
    }
  }
  return fullest;
}

int worst_level(const JobNode& node) {
  int worst = node.host.risk ? static_cast<int>(node.host.risk->level) : -1;
  for (const JobDevice& device : node.devices) {
    if (device.risk) worst = std::max(worst, static_cast<int>(device.risk->level));
  }
  return worst;
}

std::string risk_cell(const JobNode& node) {
  const int worst = worst_level(node);
  return worst < 0 ? "unknown" : std::string(name_of(static_cast<RiskLevel>(worst)));
}

std::string heard_cell(const JobNode& node) {
  return node.condition == NodeCondition::left ? "left" : heard_text(node.age_seconds);
}

// The nodes that need attention come first: not heard, at risk.
std::string nodes_text(const JobReport& report, const Terminal& terminal) {
  if (report.nodes.empty()) return "";
  std::vector<const JobNode*> nodes;
  for (const JobNode& node : report.nodes) nodes.push_back(&node);
  std::stable_sort(nodes.begin(), nodes.end(), [](const JobNode* left, const JobNode* right) {
    const auto key = [](const JobNode* node) {
      return std::pair(node->condition == NodeCondition::old ? 1 : 0, worst_level(*node));
    };
    return key(left) > key(right);
  });
  const std::size_t most = terminal.all ? nodes.size() : std::max<std::size_t>(terminal.rows, 8);
  Columns columns({"last heard", "ranks", "devices", "fullest device", "used", "of limit", "host", "risk", "node"});
  for (std::size_t n = 0; n < std::min(most, nodes.size()); ++n) {
    const JobNode& node = *nodes[n];
    const JobDevice* device = fullest_device(node);
    columns.add({heard_cell(node), format_count(node.ranks), format_count(node.devices.size()),
                 device == nullptr ? "unknown" : device_title(*device),
                 device == nullptr ? "unknown" : bytes_text(device->used_bytes),
                 device == nullptr ? "unknown" : bytes_text(device->limit_bytes), bytes_text(node.host.used_bytes),
                 risk_cell(node), shown(node.name)});
  }
  return "\n" + paint(terminal, Tone::heading, "Nodes") + "\n" + columns.text(terminal, 2) +
         more_text(nodes.size(), most, "nodes");
}

std::string next_text_of(const JobReport& report, const Terminal& terminal) {
  const auto is_recorded = [](const JobRank& rank) { return rank.allocated_bytes.has_value(); };
  if (report.ranks.empty() || std::any_of(report.ranks.begin(), report.ranks.end(), is_recorded)) return "";
  return "\n" + next_command("tidemark run -- torchrun train.py",
                             "records the ranks of a node: their memory by category, and steps", terminal);
}

}  // namespace

std::string to_text(const JobReport& report, const Terminal& terminal) {
  return paint(terminal, verdict_tone(report), job_verdict(report)) + "\n" + head_text(report) +
         notes_text(report, terminal) + outliers_text(report, terminal) + roles_text(report, terminal) +
         steps_text(report, terminal) + events_text(report, terminal) + nodes_text(report, terminal) +
         next_text_of(report, terminal);
}

std::string to_text(const CommandReport& report, const Terminal& terminal) {
  constexpr std::size_t kMaxColumns = 300;
  const bool is_done = report.state == CommandState::done;
  std::string head = fmt::format("{}: {}", shown(report.command), name_in(kCommandStateNames, report.state));
  head += is_done ? " by " + counted(report.ranks.size(), "rank") : ": " + shown(report.reason, kMaxColumns);
  std::string text = paint(terminal, is_done ? Tone::heading : Tone::error, head) + "\n";
  const std::size_t most = terminal.all ? report.ranks.size() : std::max<std::size_t>(terminal.rows, 16);
  for (std::size_t n = 0; n < std::min(most, report.ranks.size()); ++n) {
    const CommandRank& rank = report.ranks[n];
    if (rank.text.empty()) continue;
    const std::string title = rank.rank ? fmt::format("rank {}", *rank.rank) : fmt::format("process {}", rank.pid);
    text += fmt::format("  {} (node {}): {}\n", title, shown(rank.node), shown(rank.text, kMaxColumns));
  }
  return text + more_text(report.ranks.size(), most, "ranks");
}

}  // namespace tidemark
