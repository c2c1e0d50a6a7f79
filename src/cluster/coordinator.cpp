#include "cluster/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/report_codec.h"
#include "cluster/request.h"

namespace tidemark {
namespace {

constexpr std::chrono::seconds kCompareEvery{1};
constexpr std::size_t kMaxMessagesAtOnce = 16'384;  // so that a flood does not stop the coordinator
constexpr std::size_t kMaxRequestsAtOnce = 16;
constexpr std::size_t kMaxFinished = 16;  // commands

std::string without_star(std::string subjects) {
  subjects.pop_back();
  return subjects;
}

std::uint64_t wall_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

Coordinator::Coordinator(const CoordinatorOptions& options)
    : options_(options), stream_(options.job), own_(options.job, options.node), began_wall_ns_(wall_now_ns()) {
  if (options.folder.empty()) return;
  auto records = JobRecords::open(options.folder);
  if (records) {
    records_ = std::move(records).value();
  } else {
    records_problem_ = "events are not kept: " + records.error().message;
  }
}

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
  for (const std::string& subject :
       {all_states_subject(options.job), report_subject(options.job), deliver_subject(options.job),
        made->stream_.reply_subjects(), run_subject(options.job), all_acknowledged_subject(options.job)}) {
    if (auto subscribed = made->bus_->subscribe(subject); !subscribed) return subscribed.error();
  }
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
  if (const auto request = stream_.next(bus_->is_connected(), EventStream::Clock::now())) {
    static_cast<void>(bus_->publish(request->subject, request->bytes, {request->reply}));
  }
  const std::string setup = without_star(stream_.reply_subjects());
  const std::string events = without_star(all_events_subject(options_.job));  // also those that the stream delivers
  const std::string acknowledged = without_star(all_acknowledged_subject(options_.job));
  for (std::size_t n = 0; n < kMaxMessagesAtOnce; ++n) {
    const auto message = bus_->next();
    if (!message) return;
    const std::string_view subject = message->subject;
    if (subject == report_subject(options_.job)) {
      take_request(message->bytes);
    } else if (subject.starts_with(events)) {
      take_event(*message);
    } else if (subject == run_subject(options_.job)) {
      take_command(message->bytes);
    } else if (subject.starts_with(acknowledged)) {
      take_acknowledgement(*message);
    } else if (subject.starts_with(setup)) {
      stream_.take_answer(subject, message->bytes);
    } else {
      take(subject.substr(subject.rfind('.') + 1), message->bytes);
    }
  }
}

void Coordinator::take_event(const BusMessage& message) {
  auto event = decode_event_message(message.bytes);
  const std::string_view token = std::string_view(message.subject).substr(message.subject.rfind('.') + 1);
  if (event && subject_token(event->event.node) != token) event = Error{"an event is of another node than its subject"};
  if (event) {
    events_.push_back(std::move(event).value());
    delivered_.push_back(message.reply);
    return;
  }
  refusal_ = event.error().message;
  static_cast<void>(bus_->publish(message.reply, "+TERM"));
}

// They are taken before the stream is told so: what is told twice is known.
void Coordinator::add_events(std::vector<JobChange>& changes) {
  if (own_is_sent_) {
    while (auto event = own_.events().next(EventOutbox::Clock::now())) events_.push_back(std::move(*event));
  }
  if (events_.empty()) return;
  const std::vector<EventMessage> events = std::exchange(events_, {});
  const std::vector<std::string> delivered = std::exchange(delivered_, {});
  const auto fresh = records_.add(events);
  if (!fresh) return;  // they come again
  for (const std::string& reply : delivered) static_cast<void>(bus_->publish(reply, "+ACK"));
  for (const EventMessage& event : events) own_.events().remove(event.id());
  for (const JobEvent& event : *fresh) {
    JobChange change;
    change.kind = JobChange::Kind::event;
    change.node = event.node;
    change.wall_ns = wall_now_ns();
    change.event = event;
    changes.push_back(std::move(change));
  }
}

void Coordinator::take_request(std::string_view bytes) {
  const auto request = decode_request(bytes);
  if (!request) {
    refusal_ = request.error().message;
  } else if (requests_.size() < kMaxRequestsAtOnce &&
             std::find(requests_.begin(), requests_.end(), request->id) == requests_.end()) {
    requests_.push_back(request->id);  // others ask again
  }
}

void Coordinator::answer_requests() {
  if (requests_.empty()) return;
  const std::string bytes = encode(report());
  for (const std::uint64_t id : std::exchange(requests_, {})) answer(id, bytes);
}

void Coordinator::answer(std::uint64_t id, std::string_view bytes) {
  for (const std::string& message : answer_messages(bytes)) {
    static_cast<void>(bus_->publish(answer_subject(options_.job, id), message));
  }
}

void Coordinator::take_command(std::string_view bytes) {
  auto request = decode_command_request(bytes);
  if (!request) {
    refusal_ = request.error().message;
    return;
  }
  const std::uint64_t id = request->id;
  if (round_ && round_->request().id == id) return;
  for (const auto& [known, ended] : finished_) {
    if (known == id) return answer(id, encode(ended));  // its answer was lost
  }
  CommandRound round(std::move(request).value(), report(), CommandRound::Clock::now());
  if (round_) round.refuse("another command is being carried out");
  if (const auto written = records_.write(round.request(), round.report(), round.is_over()); !written) {
    round.refuse("it cannot be written to the records of the job: " + written.error().message);
  }
  if (round.is_over()) {
    finish(round);
  } else {
    round_.emplace(std::move(round));
  }
}

void Coordinator::finish(const CommandRound& round) {
  static_cast<void>(records_.write(round.request(), round.report(), true));
  answer(round.request().id, encode(round.report()));
  finished_.emplace_back(round.request().id, round.report());
  if (finished_.size() > kMaxFinished) finished_.pop_front();
}

void Coordinator::take_acknowledgement(const BusMessage& message) {
  const auto said = decode_command_answer(message.bytes);
  const std::string_view token = std::string_view(message.subject).substr(message.subject.rfind('.') + 1);
  if (!said || subject_token(said->node) != token) {
    refusal_ = said ? "an acknowledgement is of another node than its subject" : said.error().message;
  } else if (round_) {
    round_->take(*said, CommandRound::Clock::now());
  }
}

void Coordinator::run_command(MonitorEngine& engine) {
  const auto now = CommandRound::Clock::now();
  const std::vector<CommandAnswer> own = own_.take_answers();
  if (!round_) return;
  for (const CommandAnswer& said : own) round_->take(said, now);
  round_->update(now);
  for (const auto& [node, order] : round_->take_orders()) {
    if (node == own_.sender().node() && own_is_sent_) {
      own_.take(order, engine);
    } else {
      static_cast<void>(bus_->publish(command_subject(options_.job, node), encode(order)));
    }
  }
  if (!round_->is_over()) return;
  finish(*round_);
  round_.reset();
}

// A worker on this machine replaces the coordinator's own agent: `srun` starts one on every node.
void Coordinator::send_own(MonitorEngine& engine) {
  own_.look(engine);
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

std::vector<JobChange> Coordinator::update(MonitorEngine& engine) {
  receive();
  send_own(engine);
  std::vector<JobChange> changes;
  const auto now = std::chrono::steady_clock::now();
  if (now - compared_at_ >= kCompareEvery) {
    compared_at_ = now;
    compare(changes);
  }
  add_events(changes);
  run_command(engine);
  answer_requests();
  return changes;
}

void Coordinator::compare(std::vector<JobChange>& changes) {
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
    changes.push_back({kind, node.name, {}, wall_now_ns(), {}});
  }
  const auto level = report.risk ? std::optional(report.risk->risk.level) : std::nullopt;
  if (level && level != level_ && (level_ || *level != RiskLevel::low)) {
    changes.push_back({JobChange::Kind::risk, "", level_, wall_now_ns(), {}});
  }
  if (level) level_ = level;
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
  report.events.assign(records_.events().begin(), records_.events().end());
  report.earlier_events = records_.earlier();
  if (!records_problem_.empty()) report.problems.push_back(records_problem_);
  if (!records_.problem().empty()) report.problems.push_back(records_.problem());
  if (bus_ && !stream_.problem().empty())
    report.problems.push_back("events of other nodes are missing: " + stream_.problem());
  if (!refusal_.empty()) report.problems.push_back("messages were refused, the latest because " + refusal_);
  return report;
}

}  // namespace tidemark
