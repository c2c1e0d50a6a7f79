#include "cluster/command_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tidemark {
namespace {

std::string title_of(const CommandRank& rank) {
  return rank.rank ? fmt::format("rank {} (node {})", *rank.rank, rank.node)
                   : fmt::format("process {} (node {})", rank.pid, rank.node);
}

}  // namespace

CommandRound::CommandRound(CommandRequest request, const JobReport& job, Clock::time_point now)
    : request_(std::move(request)), deadline_(now + kPrepare) {
  report_.command = request_.command;
  report_.who = request_.who;
  report_.wall_ns = job.now_wall_ns;
  std::set<std::uint32_t> missing(request_.ranks.begin(), request_.ranks.end());
  std::string silent;
  for (const JobRank& rank : job.ranks) {
    const bool is_chosen =
        request_.ranks.empty() ||
        (rank.rank && std::find(request_.ranks.begin(), request_.ranks.end(), *rank.rank) != request_.ranks.end());
    if (!is_chosen) continue;
    if (rank.rank) missing.erase(*rank.rank);
    const std::string& node = job.nodes[rank.node].name;
    report_.ranks.push_back({node, rank.rank, rank.pid, false, ""});
    pids_[node].push_back(rank.pid);
    if (!rank.current && silent.empty()) silent = title_of(report_.ranks.back()) + ": its node is not heard";
  }
  answered_.assign(report_.ranks.size(), false);
  const std::string why = !is_command(request_.command) ? "there is no such command"
                          : !missing.empty()            ? fmt::format("there is no rank {}", *missing.begin())
                          : report_.ranks.empty()       ? "the job has no ranks"
                                                        : silent;
  if (why.empty()) {
    order(CommandPhase::prepare);
  } else {
    refuse(why);
  }
}

void CommandRound::order(CommandPhase phase) {
  for (const auto& [node, pids] : pids_) orders_.push_back({node, {request_.id, phase, request_.command, pids}});
}

void CommandRound::refuse(const std::string& reason) {
  if (phase_ != Phase::prepare) return;
  report_.state = CommandState::refused;
  report_.reason = reason;
  phase_ = Phase::over;
  orders_.clear();
}

bool CommandRound::all_answered() const {
  return std::all_of(answered_.begin(), answered_.end(), [](bool answered) { return answered; });
}

void CommandRound::take(const CommandAnswer& answer, Clock::time_point now) {
  const CommandPhase expected = phase_ == Phase::prepare ? CommandPhase::prepare : CommandPhase::commit;
  if (is_over() || answer.id != request_.id || answer.phase != expected) return;
  for (const CommandRank& said : answer.ranks) {
    for (std::size_t n = 0; n < report_.ranks.size(); ++n) {
      CommandRank& rank = report_.ranks[n];
      if (answered_[n] || rank.pid != said.pid || rank.node != answer.node) continue;
      answered_[n] = true;
      rank.ok = said.ok;
      rank.text = said.text;
    }
  }
  if (!all_answered()) return;
  if (phase_ == Phase::commit) return end();
  const auto cannot =
      std::find_if(report_.ranks.begin(), report_.ranks.end(), [](const CommandRank& rank) { return !rank.ok; });
  if (cannot != report_.ranks.end()) {
    refuse(title_of(*cannot) + ": " + cannot->text);
    return order(CommandPhase::cancel);
  }
  phase_ = Phase::commit;
  deadline_ = now + kCommit;
  answered_.assign(report_.ranks.size(), false);
  for (CommandRank& rank : report_.ranks) rank = {rank.node, rank.rank, rank.pid, false, ""};
  order(CommandPhase::commit);
}

void CommandRound::update(Clock::time_point now) {
  if (is_over() || now < deadline_) return;
  const auto first = std::find(answered_.begin(), answered_.end(), false);
  const auto position = static_cast<std::size_t>(first - answered_.begin());
  for (std::size_t n = 0; n < report_.ranks.size(); ++n) {
    if (!answered_[n]) report_.ranks[n].text = "no answer in time";
  }
  if (phase_ == Phase::commit) return end();
  refuse(title_of(report_.ranks[position]) + ": its agent did not answer in time");
  order(CommandPhase::cancel);
}

void CommandRound::end() {
  const auto not_done =
      std::find_if(report_.ranks.begin(), report_.ranks.end(), [](const CommandRank& rank) { return !rank.ok; });
  phase_ = Phase::over;
  report_.state = not_done == report_.ranks.end() ? CommandState::done : CommandState::failed;
  if (not_done != report_.ranks.end()) report_.reason = title_of(*not_done) + ": " + not_done->text;
}

}  // namespace tidemark
