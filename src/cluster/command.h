// Commands to a job's ranks, which all of them carry out, or none: from the program that sends one to the coordinator,
// and from there to the agents.
//
//   tidemark.JOB.run                  a CommandRequest; the answer is a CommandReport, as AnswerParts (request.h)
//   tidemark.JOB.command.NODE         CommandOrders to the agent of that node
//   tidemark.JOB.acknowledged.NODE    its CommandAnswers
//
// None of these is kept in a stream: a command that did not arrive is not carried out later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "cluster/job_report.h"

namespace tidemark {

/// "record dump": the flight recorders of the ranks (tidemark run --keep) write what they have.
inline constexpr std::string_view kRecordDump = "record dump";
/// Whether it is one of the commands.
[[nodiscard]] bool is_command(std::string_view command);

inline constexpr std::size_t kMaxCommandBytes = std::size_t{1} << 20;

struct CommandRequest {
  std::uint64_t id = 0;  ///< random, never 0
  std::string command;
  std::vector<std::uint32_t> ranks;  ///< empty: all
  std::string who;                   ///< "user on machine"

  bool operator==(const CommandRequest&) const = default;
};

enum class CommandPhase : std::uint8_t {
  prepare = 0,  ///< can you?
  commit = 1,   ///< do it
  cancel = 2,   ///< do not: another rank cannot
};
inline constexpr EnumName<CommandPhase> kCommandPhaseNames[] = {
    {CommandPhase::prepare, "prepare"}, {CommandPhase::commit, "commit"}, {CommandPhase::cancel, "cancel"}};

struct CommandOrder {
  std::uint64_t id = 0;
  CommandPhase phase = CommandPhase::prepare;
  std::string command;
  std::vector<std::int64_t> pids;  ///< the ranks' processes on that node

  bool operator==(const CommandOrder&) const = default;
};

struct CommandAnswer {
  std::uint64_t id = 0;
  CommandPhase phase = CommandPhase::prepare;  ///< to which order
  std::string node;
  std::vector<CommandRank> ranks;
};

[[nodiscard]] std::string encode(const CommandRequest& request);
[[nodiscard]] std::string encode(const CommandOrder& order);
[[nodiscard]] std::string encode(const CommandAnswer& answer);
[[nodiscard]] std::string encode(const CommandReport& report);
/// Hostile input: texts come out clean, as by clean_name().
[[nodiscard]] Result<CommandRequest> decode_command_request(std::string_view bytes);
[[nodiscard]] Result<CommandOrder> decode_command_order(std::string_view bytes);
[[nodiscard]] Result<CommandAnswer> decode_command_answer(std::string_view bytes);
[[nodiscard]] Result<CommandReport> decode_command_report(std::string_view bytes);

[[nodiscard]] std::string run_subject(std::string_view job);
[[nodiscard]] std::string command_subject(std::string_view job, std::string_view node);
[[nodiscard]] std::string acknowledged_subject(std::string_view job, std::string_view node);
/// With '*' for the node.
[[nodiscard]] std::string all_acknowledged_subject(std::string_view job);

}  // namespace tidemark
