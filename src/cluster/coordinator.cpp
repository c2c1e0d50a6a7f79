#include "cluster/coordinator.h"

#include <fmt/format.h>

#include <utility>

namespace tidemark {
namespace {

constexpr std::chrono::seconds kCompareEvery{1};
constexpr std::size_t kMaxMessagesAtOnce = 16'384;  // so that a flood does not stop the coordinator

std::uint64_t wall_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

Coordinator::Coordinator(const CoordinatorOptions& options)
    : options_(options), own_(options.job, options.node), began_wall_ns_(wall_now_ns()) {}

Result<std::unique_ptr<Coordinator>> Coordinator::start(const CoordinatorOptions& options) {
  std::unique_ptr<Coordinator> made(new Coordinator(options));
  std::optional<BusOptions> bus = options.server;
  if (options.own_server) {
    auto server = NatsServer::start(*options.own_server);
    if (!server) return server.error();
    made->server_.emplace(std::move(server).value());
    const auto certificate = server_certificate(options.own_server->key);
    if (!certificate) return certificate.error();
    bus = BusOptions{made->server_->url(), "", options.own_server->key.password(), certificate->certificate};
  }
  if (!bus) return made;
  bus->name = "tidemark coordinator of " + clean_name(options.job);
  auto opened = Bus::open(*bus);
  if (!opened) return opened.error();
  made->bus_ = std::move(opened).value();
  if (auto subscribed = made->bus_->subscribe(all_states_subject(options.job)); !subscribed) return subscribed.error();
  return made;
}

std::uint64_t Coordinator::now_ns() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began_).count());
}

void Coordinator::take(std::string_view token, std::string_view bytes) {
  const JobState::Taken taken = job_.take(token, bytes, now_ns());
  if (!taken.problem.empty()) refusal_ = taken.problem;
  if (taken.ask.empty()) return;
  if (taken.ask == own_.sender().node() && own_is_sent_) own_.send_full_next();
  if (bus_) static_cast<void>(bus_->publish(ask_subject(options_.job, taken.ask), ""));
}

void Coordinator::receive() {
  if (server_) server_->keep_running();
  if (!bus_) return;
  for (std::size_t n = 0; n < kMaxMessagesAtOnce; ++n) {
    const auto message = bus_->next();
    if (!message) return;
    const std::string_view subject = message->subject;
    take(subject.substr(subject.rfind('.') + 1), message->bytes);
  }
}

// A worker on this machine replaces the coordinator's own agent: `srun` starts one on every node.
void Coordinator::send_own(const MonitorEngine& engine) {
  const auto node = job_.nodes().find(own_.sender().node());
  const bool replaced = node != job_.nodes().end() && node->second.instance != 0 &&
                        node->second.instance != own_.sender().instance() && !node->second.left &&
                        node->second.age_ns(now_ns()) < JobState::kOldNs;
  if (own_is_sent_ && replaced) own_is_sent_ = false;
  if (!own_is_sent_ && !replaced) {
    own_is_sent_ = true;
    own_.send_full_next();
  }
  if (!own_is_sent_ || !own_.due() || !engine.state().devices_known) return;
  take(subject_token(own_.sender().node()), own_.next(engine));
}

std::vector<JobChange> Coordinator::update(const MonitorEngine& engine) {
  receive();
  send_own(engine);
  const auto now = std::chrono::steady_clock::now();
  if (now - compared_at_ < kCompareEvery) return {};
  compared_at_ = now;
  std::vector<JobChange> changes;
  const JobReport report = compare_job(job_, now_ns());
  for (const JobNode& node : report.nodes) {
    const auto before = conditions_.find(node.name);
    const bool known = before != conditions_.end();
    if (known && before->second == node.condition) continue;
    if (!known && node.condition != NodeCondition::current) continue;  // no state came yet
    const bool was_left = known && before->second == NodeCondition::left;
    conditions_[node.name] = node.condition;
    const auto kind = node.condition == NodeCondition::left  ? JobChange::Kind::left
                      : node.condition == NodeCondition::old ? JobChange::Kind::silent
                      : known && !was_left                   ? JobChange::Kind::heard_again
                                                             : JobChange::Kind::joined;
    changes.push_back({kind, node.name, {}, wall_now_ns()});
  }
  const auto level = report.risk ? std::optional(report.risk->risk.level) : std::nullopt;
  if (level && level != level_ && (level_ || *level != RiskLevel::low)) {
    changes.push_back({JobChange::Kind::risk, "", level_, wall_now_ns()});
  }
  if (level) level_ = level;
  return changes;
}

JobReport Coordinator::report() const {
  JobReport report = compare_job(job_, now_ns());
  report.name = options_.job;
  report.began_wall_ns = began_wall_ns_;
  report.now_wall_ns = wall_now_ns();
  report.duration_seconds = static_cast<double>(now_ns()) / 1e9;
  report.end = end_;
  if (server_ && !server_->problem().empty()) report.problems.push_back(server_->problem());
  if (bus_ && !bus_->is_connected()) {
    report.problems.push_back("the server of the job cannot be reached: " + bus_->problem());
  }
  if (server_ && server_->restarts() > 0) {
    report.problems.push_back(fmt::format("nats-server was started again, {} times", server_->restarts()));
  }
  if (!refusal_.empty()) report.problems.push_back("messages were refused, the latest because " + refusal_);
  return report;
}

}  // namespace tidemark
