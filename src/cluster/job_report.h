// A job as a whole: its risk, and its ranks beside each other.
//
// Sizes are bytes; std::nullopt and empty text: unknown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/forecast/forecaster.h"
#include "base/enum_names.h"
#include "monitor/watch_reports.h"

namespace tidemark {

enum class NodeCondition : std::uint8_t {
  current = 0,
  old = 1,   ///< nothing was heard for a while: the machine, its agent or the network may be gone
  left = 2,  ///< its agent was stopped
};
inline constexpr EnumName<NodeCondition> kNodeConditionNames[] = {
    {NodeCondition::current, "current"}, {NodeCondition::old, "old"}, {NodeCondition::left, "left"}};

struct JobDevice {
  std::string key;  ///< of the WatchedDevice
  bool is_host = false;
  std::string name;
  std::string lost;  ///< why it is no longer read
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> peak_bytes;  ///< of the samples since the agent's start
  std::optional<RiskAssessment> risk;       ///< std::nullopt: not assessed
};

struct JobNode {
  std::string name;
  NodeCondition condition = NodeCondition::current;
  double age_seconds = 0;  ///< of its state
  bool has_rival = false;  ///< another agent sends under the same name
  std::size_t ranks = 0;   ///< entries of JobReport::ranks
  std::vector<JobDevice> devices;
  JobDevice host;
  std::vector<std::string> problems;  ///< drivers that do not work, ranks of other jobs; sentences
  // Counters of its messages.
  std::uint64_t taken = 0;
  std::uint64_t lost = 0;
  std::uint64_t repeated = 0;
  std::uint64_t refused = 0;
};

/// The measures of a rank's memory that ranks are compared by.
enum class RankMeasure : std::uint8_t {
  used = 0,       ///< of the device, by the driver; on a machine without GPUs resident memory
  reserved = 1,   ///< by PyTorch's allocator
  allocated = 2,  ///< in it
};
inline constexpr EnumName<RankMeasure> kRankMeasureNames[] = {
    {RankMeasure::used, "used"}, {RankMeasure::reserved, "reserved"}, {RankMeasure::allocated, "allocated"}};

/// A process that runs the job's program, with its memory on the device that it uses most.
struct JobRank {
  std::size_t node = 0;  ///< position in JobReport::nodes
  std::int64_t pid = -1;
  std::string process;  ///< "python train.py"
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> local_rank;
  std::optional<std::uint32_t> world_size;
  std::string role;
  bool current = true;                ///< its node's state is
  std::optional<std::size_t> device;  ///< position in JobNode::devices; std::nullopt: it uses none
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> reserved_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> other_devices_bytes;  ///< on the node's other devices, such as contexts on GPU 0
  std::optional<std::uint64_t> limit_bytes;          ///< what it has and what is free, as long as others take no more
  std::optional<RiskAssessment> risk;                ///< of the process and of its device: the worse
  std::optional<std::uint64_t> steps;
  std::optional<double> step_seconds;
  /// Allocated memory by category; std::nullopt for all: the process is not recorded, or without attribution.
  std::array<std::optional<std::uint64_t>, std::size(kCategoryNames)> categories = {};

  [[nodiscard]] std::optional<std::uint64_t> bytes(RankMeasure measure) const;
};

/// A part of a rank's used memory.
enum class RankPart : std::uint8_t {
  category = 0,  ///< allocated memory of one category
  unused = 1,    ///< reserved by PyTorch's allocator, but not allocated
  outside = 2,   ///< used, but not by PyTorch's allocator: CUDA context, NCCL, libraries
  allocated = 3  ///< where categories are unknown
};
inline constexpr EnumName<RankPart> kRankPartNames[] = {{RankPart::category, "category"},
                                                        {RankPart::unused, "unused"},
                                                        {RankPart::outside, "outside_allocator"},
                                                        {RankPart::allocated, "allocated"}};

struct PartDifference {
  RankPart part = RankPart::category;
  Category category = Category::unknown;  ///< for RankPart::category
  std::int64_t bytes = 0;                 ///< more than the peers' median
};

/// A rank that differs from its peers, the other current ranks of its role, by OutlierLimit.
struct RankOutlier {
  std::size_t rank = 0;  ///< position in JobReport::ranks
  RankMeasure measure = RankMeasure::used;
  std::uint64_t bytes = 0;
  std::uint64_t peer_median_bytes = 0;
  std::size_t peers = 0;
  std::vector<PartDifference> parts;  ///< what explains it, largest first; at most kMaxParts. Empty: unknown

  static constexpr std::size_t kMaxParts = 3;
};

/// The current ranks of one role.
struct RankRole {
  std::string role;  ///< empty: of ranks without one
  std::size_t count = 0;
  std::size_t known = 0;  ///< of these, whose memory is known
  RankMeasure measure = RankMeasure::used;
  // Undefined if `known` is 0.
  std::uint64_t min_bytes = 0;
  std::uint64_t median_bytes = 0;
  std::uint64_t max_bytes = 0;
  std::size_t min_rank = 0;  ///< position in JobReport::ranks
  std::size_t max_rank = 0;
};

/// A rank whose steps take longer than those of its role. In synchronous training all ranks take as long as the
/// slowest, so that none stands out.
struct Straggler {
  std::size_t rank = 0;  ///< position in JobReport::ranks
  double step_seconds = 0;
  double median_seconds = 0;
};

/// The memory that decides the job's risk: the worst one, of these the one that is full first.
struct JobRisk {
  RiskAssessment risk;
  std::size_t node = 0;               ///< position in JobReport::nodes
  std::optional<std::size_t> rank;    ///< position in JobReport::ranks; std::nullopt: no rank's
  std::optional<std::size_t> device;  ///< position in JobNode::devices; std::nullopt: the host's memory
};

enum class JobEventKind : std::uint8_t {
  out_of_memory = 0,
  risk = 1,  ///< the risk of a memory changed
  leak = 2,  ///< a program's memory was found to grow without end
  dump = 3,  ///< a flight recorder wrote a recording
  rank_started = 4,
  rank_ended = 5,
};
inline constexpr EnumName<JobEventKind> kJobEventKindNames[] = {{JobEventKind::out_of_memory, "out_of_memory"},
                                                                {JobEventKind::risk, "risk"},
                                                                {JobEventKind::leak, "leak"},
                                                                {JobEventKind::dump, "dump"},
                                                                {JobEventKind::rank_started, "rank_started"},
                                                                {JobEventKind::rank_ended, "rank_ended"}};

/// Something that happened on a node.
struct JobEvent {
  static constexpr std::size_t kMaxTextBytes = 1024;

  JobEventKind kind = JobEventKind::out_of_memory;
  std::string node;
  std::uint64_t wall_ns = 0;          ///< since 1970, by the node's clock
  std::optional<std::uint32_t> rank;  ///< std::nullopt: of no rank
  std::optional<std::int64_t> pid;
  std::string device;  ///< its key; empty: of none
  std::string text;    ///< a clause

  bool operator==(const JobEvent&) const = default;
};

struct JobReport {
  static constexpr std::size_t kMaxEvents = 256;

  std::string name;
  std::uint64_t began_wall_ns = 0;  ///< since 1970, by the coordinator's clock
  std::uint64_t now_wall_ns = 0;
  double duration_seconds = 0;
  WatchEnd end = WatchEnd::not_yet;
  std::vector<JobNode> nodes;               ///< by name
  std::vector<JobRank> ranks;               ///< by rank; those without one last
  std::optional<std::uint32_t> world_size;  ///< as the ranks say; std::nullopt also if they differ
  std::optional<JobRisk> risk;              ///< of nodes whose state is current; std::nullopt: nothing is assessed
  std::vector<RankRole> roles;
  std::vector<RankOutlier> outliers;   ///< largest difference first
  std::optional<double> step_seconds;  ///< the median of the current ranks
  std::vector<Straggler> stragglers;   ///< slowest first
  std::vector<JobEvent> events;        ///< the latest, in the order in which they came; at most kMaxEvents
  std::uint64_t earlier_events = 0;    ///< before those
  std::vector<std::string> problems;   ///< of the coordinator and its server; sentences
  std::uint64_t refused = 0;           ///< messages that belong to no node
};

/// How a command to the job's ranks ended.
enum class CommandState : std::uint8_t {
  done = 0,     ///< by all ranks
  refused = 1,  ///< before any rank began
  failed = 2,   ///< some rank did not do it, or did not answer in time
};
inline constexpr EnumName<CommandState> kCommandStateNames[] = {
    {CommandState::done, "done"}, {CommandState::refused, "refused"}, {CommandState::failed, "failed"}};

struct CommandRank {
  std::string node;
  std::optional<std::uint32_t> rank;
  std::int64_t pid = -1;
  bool ok = false;
  std::string text;  ///< what it did, or why not: a clause
};

struct CommandReport {
  std::string command;        ///< "record dump"
  std::string who;            ///< as the program that sent it says
  std::uint64_t wall_ns = 0;  ///< when it came, since 1970, by the coordinator's clock
  CommandState state = CommandState::refused;
  std::string reason;              ///< why it was refused or failed, a clause; else empty
  std::vector<CommandRank> ranks;  ///< those that it is for
};

/// A change of the job while it is watched.
struct JobChange {
  enum class Kind : std::uint8_t { joined, silent, heard_again, left, risk, event };
  Kind kind = Kind::joined;
  std::string node;                      ///< for changes of a node
  std::optional<RiskLevel> before = {};  ///< for `risk`; std::nullopt: not assessed
  std::uint64_t wall_ns = 0;             ///< since 1970, by the coordinator's clock
  JobEvent event = {};                   ///< for `event`
};

}  // namespace tidemark
