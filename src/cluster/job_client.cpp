#include "cluster/job_client.h"

#include <thread>
#include <utility>

#include "cluster/job_key.h"
#include "cluster/report_codec.h"
#include "cluster/request.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{5};
constexpr std::chrono::seconds kAskAgain{2};  // a question or a part of its answer may be lost

}  // namespace

JobClient::JobClient(std::unique_ptr<Bus> bus, std::string job) : bus_(std::move(bus)), job_(std::move(job)) {}

Result<JobClient> JobClient::connect(const BusOptions& server, const std::string& job) {
  auto bus = Bus::open(server);
  if (!bus) return bus.error();
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!(*bus)->is_connected()) {
    if (Clock::now() > deadline) return Error{(*bus)->problem()};
    std::this_thread::sleep_for(kLook);
  }
  return JobClient(std::move(bus).value(), job);
}

Result<std::string> JobClient::ask(const std::string& subject, const std::string& question, std::uint64_t id,
                                   std::chrono::seconds patience) {
  if (auto subscribed = bus_->subscribe(answer_subject(job_, id)); !subscribed) return subscribed.error();
  const Clock::time_point deadline = Clock::now() + patience;
  Clock::time_point next = Clock::now();
  AnswerParts parts;
  while (Clock::now() < deadline) {
    if (Clock::now() >= next && bus_->publish(subject, question)) next = Clock::now() + kAskAgain;
    while (const auto message = bus_->next()) {
      if (auto taken = parts.take(message->bytes); !taken) return taken.error();
      if (auto whole = parts.whole()) return std::move(*whole);
    }
    std::this_thread::sleep_for(kLook);
  }
  return Error{"no coordinator answers"};
}

Result<JobReport> JobClient::report() {
  const std::uint64_t id = random_number();
  const auto answer = ask(report_subject(job_), encode(Request{id}), id, kPatience);
  if (!answer) return answer.error();
  return decode_report(*answer);
}

Result<CommandReport> JobClient::run(const CommandRequest& request) {
  const auto answer = ask(run_subject(job_), encode(request), request.id, kCommandPatience);
  if (!answer) return answer.error();
  return decode_command_report(*answer);
}

}  // namespace tidemark
