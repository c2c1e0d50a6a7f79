// Fuzz target of a job's messages: for any bytes, a message of an agent is refused or taken, and the job can be
// compared; reports, requests, events and commands are refused or read.
//
// The input is a sequence of messages: two bytes with the length, little-endian, and an AgentMessage, whose state has
// no checksum, which no mutation would get right.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "cluster/command.h"
#include "cluster/event.h"
#include "cluster/job.h"
#include "cluster/job_state.h"
#include "cluster/report_codec.h"
#include "cluster/request.h"
#include "fuzz/require.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

void add_checksum(std::string& state) {
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(state)));
  for (unsigned byte = 0; byte < 4; ++byte) state += static_cast<char>(sum >> (8 * byte));
}

bool is_clean(const std::string& name) {
  return !name.empty() && name.size() <= AgentMessage::kMaxNameBytes &&
         std::none_of(name.begin(), name.end(),
                      [](char letter) { return static_cast<unsigned char>(letter) < ' ' || letter == 0x7F; });
}

void check(const JobReport& report) {
  for (const JobRank& rank : report.ranks) {
    require(rank.node < report.nodes.size(), "ranks are on nodes of the job");
    require(!rank.device || *rank.device < report.nodes[rank.node].devices.size(),
            "ranks are on devices of their node");
  }
  for (const RankOutlier& outlier : report.outliers) {
    require(outlier.rank < report.ranks.size(), "outliers are ranks");
    require(outlier.parts.size() <= RankOutlier::kMaxParts, "reasons are few");
  }
  if (report.risk) {
    require(report.risk->node < report.nodes.size(), "the risk is of a node");
    require(!report.risk->rank || *report.risk->rank < report.ranks.size(), "the risk is of a rank");
  }
}

// The messages between the coordinator and the programs that ask it.
void read_others(const std::string& bytes) {
  if (const auto report = decode_report(bytes)) check(*report);
  if (const auto request = decode_request(bytes)) require(request->id != 0, "requests have a number");
  if (const auto event = decode_event_message(bytes)) {
    require(is_clean(event->event.node), "nodes of events are clean");
    require(event->event.text.size() <= JobEvent::kMaxTextBytes, "texts of events are bounded");
    require(decode_event_message(encode(*event)).ok(), "an event can be sent on");
  }
  if (const auto request = decode_command_request(bytes)) require(is_clean(request->who), "names are clean");
  static_cast<void>(decode_command_order(bytes));
  static_cast<void>(decode_command_answer(bytes));
  static_cast<void>(decode_command_report(bytes));
  AnswerParts parts;
  if (parts.take(bytes)) require(parts.take(bytes).ok(), "a part may come twice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  JobState job;
  std::uint64_t now_ns = 1'000'000'000'000;
  std::span<const std::uint8_t> rest(data, size);
  while (rest.size() > 2) {
    const std::size_t length = std::min<std::size_t>(rest[0] + std::size_t{256} * rest[1], rest.size() - 2);
    const std::string bytes(rest.begin() + 2, rest.begin() + 2 + static_cast<std::ptrdiff_t>(length));
    rest = rest.subspan(2 + length);
    now_ns += 1'000'000'000;
    read_others(bytes);
    auto message = decode_agent_message(bytes);
    if (!message) {
      require(!job.take("node", bytes, now_ns).accepted, "what cannot be decoded is not accepted");
      continue;
    }
    require(is_clean(message->node), "names are clean");
    if (!message->state.empty()) add_checksum(message->state);
    static_cast<void>(job.take(subject_token(message->node), encode(*message), now_ns));
    const JobReport report = compare_job(job, now_ns);
    check(report);
    require(decode_report(encode(report)).ok(), "a report can be sent");
    check(compare_job(job, now_ns + 60'000'000'000));
    static_cast<void>(all_devices(job, 4));
  }
  return 0;
}
