#include "cluster/command.h"

#include <fmt/format.h>

#include "cluster/message_coder.h"
#include "cluster/protocol.h"

namespace tidemark {

// Numbers are never used for another member.
template <typename Coder>
void members(Coder& coder, CommandRequest& of) {
  coder(1, of.id), coder(2, of.command), coder(3, of.ranks), coder(4, of.who);
}
template <typename Coder>
void members(Coder& coder, CommandOrder& of) {
  coder(1, of.id), coder(2, of.phase), coder(3, of.command), coder(4, of.pids);
}
template <typename Coder>
void members(Coder& coder, CommandRank& of) {
  coder(1, of.node), coder(2, of.rank), coder(3, of.pid), coder(4, of.ok), coder(5, of.text);
}
template <typename Coder>
void members(Coder& coder, CommandAnswer& of) {
  coder(1, of.id), coder(2, of.phase), coder(3, of.node), coder(4, of.ranks);
}
template <typename Coder>
void members(Coder& coder, CommandReport& of) {
  coder(1, of.command), coder(2, of.who), coder(3, of.wall_ns), coder(4, of.state), coder(5, of.reason);
  coder(6, of.ranks);
}

inline bool is_known(CommandPhase value) {
  return is_in(kCommandPhaseNames, value);
}
inline bool is_known(CommandState value) {
  return is_in(kCommandStateNames, value);
}

namespace {

template <typename Message>
Result<Message> message_in(std::string_view bytes) {
  if (bytes.size() > kMaxCommandBytes) return Error{fmt::format("a command's message has {} bytes", bytes.size())};
  try {
    return decode_members<Message>(bytes, 16 * kMaxCommandBytes);
  } catch (const std::exception& error) {
    return Error{fmt::format("a command's message is damaged: {}", error.what())};
  }
}

void clean_ranks(std::vector<CommandRank>& ranks) {
  for (CommandRank& rank : ranks) {
    rank.node = clean_name(rank.node);
    rank.text = clean_name(rank.text, JobEvent::kMaxTextBytes);
  }
}

}  // namespace

bool is_command(std::string_view command) {
  return command == kRecordDump;
}

std::string encode(const CommandRequest& request) {
  return encode_members(request);
}
std::string encode(const CommandOrder& order) {
  return encode_members(order);
}
std::string encode(const CommandAnswer& answer) {
  return encode_members(answer);
}
std::string encode(const CommandReport& report) {
  return encode_members(report);
}

Result<CommandRequest> decode_command_request(std::string_view bytes) {
  auto request = message_in<CommandRequest>(bytes);
  if (!request) return request;
  if (request->id == 0) return Error{"a command has no number"};
  request->command = clean_name(request->command);
  request->who = clean_name(request->who);
  return request;
}

Result<CommandOrder> decode_command_order(std::string_view bytes) {
  return message_in<CommandOrder>(bytes);
}

Result<CommandAnswer> decode_command_answer(std::string_view bytes) {
  auto answer = message_in<CommandAnswer>(bytes);
  if (!answer) return answer;
  answer->node = clean_name(answer->node);
  clean_ranks(answer->ranks);
  return answer;
}

Result<CommandReport> decode_command_report(std::string_view bytes) {
  auto report = message_in<CommandReport>(bytes);
  if (!report) return report;
  report->command = clean_name(report->command);
  report->who = clean_name(report->who);
  report->reason = clean_name(report->reason, JobEvent::kMaxTextBytes);
  clean_ranks(report->ranks);
  return report;
}

std::string run_subject(std::string_view job) {
  return fmt::format("tidemark.{}.run", subject_token(job));
}

std::string command_subject(std::string_view job, std::string_view node) {
  return fmt::format("tidemark.{}.command.{}", subject_token(job), subject_token(node));
}

std::string acknowledged_subject(std::string_view job, std::string_view node) {
  return fmt::format("tidemark.{}.acknowledged.{}", subject_token(job), subject_token(node));
}

std::string all_acknowledged_subject(std::string_view job) {
  return fmt::format("tidemark.{}.acknowledged.*", subject_token(job));
}

}  // namespace tidemark
