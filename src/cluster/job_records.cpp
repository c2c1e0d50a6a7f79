#include "cluster/job_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace tidemark {
namespace {

constexpr std::int64_t kRecordsVersion = 1;
constexpr std::int64_t kRecordsApplicationId = 0x54494A42;  // "TIJB"

// Times are nanoseconds since 1970, by the clock of the node. An event's `instance` and `number` name it: the agent's
// start, and its count since. Of a command, `ranks` (empty: all) and `answers` are JSON; its state is "begun" until it
// is over.
constexpr const char* kSchema =
    "CREATE TABLE events(position INTEGER PRIMARY KEY, instance TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT "
    "NULL, node TEXT NOT NULL, time INTEGER NOT NULL, rank INTEGER, pid INTEGER, device TEXT NOT NULL, text TEXT NOT "
    "NULL, UNIQUE(instance, number)); "
    "CREATE TABLE commands(id TEXT PRIMARY KEY, time INTEGER NOT NULL, who TEXT NOT NULL, command TEXT NOT NULL, ranks "
    "TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, answers TEXT NOT NULL)";

std::optional<std::int64_t> signed_of(const std::optional<std::uint32_t>& number) {
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

std::string answers_text(const std::vector<CommandRank>& ranks) {
  auto answers = nlohmann::ordered_json::array();
  for (const CommandRank& rank : ranks) {
    nlohmann::ordered_json entry = {
        {"node", rank.node}, {"rank", nullptr}, {"pid", rank.pid}, {"ok", rank.ok}, {"text", rank.text}};
    if (rank.rank) entry["rank"] = *rank.rank;
    answers.push_back(std::move(entry));
  }
  return answers.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Result<JobRecords> JobRecords::open(const std::string& folder) {
  JobRecords records;
  records.path_ = folder + kFile;
  const auto failed = [&](const std::string& why) {
    return Error{fmt::format("{}: {} (remove it, or use another --state)", records.path_, why)};
  };
  DatabaseError error;
  records.database_ = Database::open(records.path_, DatabaseUse::write, error);
  if (!records.database_) return failed(error.message);
  Database& database = *records.database_;
  const auto objects = database.number("SELECT count(*) FROM sqlite_master");
  if (!objects) return failed(database.error().message);
  if (*objects == 0) {
    const std::string statements =
        fmt::format("BEGIN IMMEDIATE; {}; PRAGMA application_id={}; PRAGMA user_version={}; COMMIT", kSchema,
                    kRecordsApplicationId, kRecordsVersion);
    if (!database.execute(statements)) return failed(database.error().message);
  }
  if (database.number("PRAGMA application_id") != kRecordsApplicationId ||
      database.number("PRAGMA user_version") != kRecordsVersion) {
    return failed("not the records of a job, or of another version");
  }
  // Nothing is lost if a program is killed; the latest may be if the machine loses power.
  database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=8388608");
  if (auto read = records.read_latest(); !read) return failed(read.error().message);
  return records;
}

Result<void> JobRecords::read_latest() {
  count_ = static_cast<std::uint64_t>(database_->number("SELECT count(*) FROM events").value_or(0));
  Statement query = database_->prepare(
      fmt::format("SELECT kind, node, time, rank, pid, device, text FROM events ORDER BY position DESC LIMIT {}",
                  JobReport::kMaxEvents));
  while (query.step()) {
    JobEvent event;
    event.kind = value_in(kJobEventKindNames, query.text(0)).value_or(JobEventKind::out_of_memory);
    event.node = query.text(1);
    event.wall_ns = static_cast<std::uint64_t>(query.integer(2));
    if (const auto rank = query.maybe(3)) event.rank = static_cast<std::uint32_t>(*rank);
    event.pid = query.maybe(4);
    event.device = query.text(5);
    event.text = query.text(6);
    latest_.push_front(std::move(event));
  }
  if (database_->error().is_error()) return Error{database_->error().message};
  return {};
}

void JobRecords::keep(const JobEvent& event) {
  latest_.push_back(event);
  ++count_;
  if (latest_.size() > JobReport::kMaxEvents) latest_.pop_front();
}

std::optional<std::vector<JobEvent>> JobRecords::write_events(const std::vector<EventMessage>& events) {
  if (!database_->execute("BEGIN IMMEDIATE")) return std::nullopt;
  Statement insert = database_->prepare(
      "INSERT INTO events(instance, number, kind, node, time, rank, pid, device, text) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "
      "?7, ?8, ?9) ON CONFLICT DO NOTHING");
  std::vector<JobEvent> fresh;
  for (const EventMessage& message : events) {
    const JobEvent& event = message.event;
    const std::string instance = fmt::format("{:016x}", message.instance);
    insert.bind(1, instance).bind(2, static_cast<std::int64_t>(message.number));
    insert.bind(3, name_in(kJobEventKindNames, event.kind)).bind(4, event.node);
    insert.bind(5, static_cast<std::int64_t>(event.wall_ns)).bind(6, signed_of(event.rank)).bind(7, event.pid);
    insert.bind(8, event.device).bind(9, event.text);
    if (!insert.run()) return std::nullopt;
    if (database_->number("SELECT changes()").value_or(0) == 1) fresh.push_back(event);
  }
  const std::string prune =
      fmt::format("DELETE FROM events WHERE position <= (SELECT max(position) FROM events) - {}", kMaxEvents);
  if (!database_->execute(prune) || !database_->execute("COMMIT")) return std::nullopt;
  return fresh;
}

std::optional<std::vector<JobEvent>> JobRecords::add(const std::vector<EventMessage>& events) {
  std::vector<JobEvent> fresh;
  if (!database_) {
    for (const EventMessage& message : events) {
      if (seen_.size() == kMaxEvents) seen_.clear();
      if (seen_.insert({message.instance, message.number}).second) fresh.push_back(message.event);
    }
  } else {
    auto written = write_events(events);
    if (!written) {
      problem_ = fmt::format("{}: cannot be written: {}", path_, database_->error().message);
      database_->execute("ROLLBACK");
      return std::nullopt;
    }
    problem_.clear();
    fresh = std::move(*written);
  }
  for (const JobEvent& event : fresh) keep(event);
  return fresh;
}

Result<void> JobRecords::write(const CommandRequest& request, const CommandReport& report, bool is_over) {
  if (!database_) return Error{"there are none"};
  Statement statement = database_->prepare(
      "INSERT OR REPLACE INTO commands(id, time, who, command, ranks, state, reason, answers) VALUES(?1, ?2, ?3, ?4, "
      "?5, ?6, ?7, ?8)");
  const std::string id = fmt::format("{:016x}", request.id);
  const std::string ranks = nlohmann::ordered_json(request.ranks).dump();
  const std::string answers = answers_text(report.ranks);
  const std::string_view state = is_over ? name_in(kCommandStateNames, report.state) : "begun";
  statement.bind(1, id).bind(2, static_cast<std::int64_t>(report.wall_ns)).bind(3, report.who).bind(4, report.command);
  statement.bind(5, ranks).bind(6, state).bind(7, report.reason).bind(8, answers);
  if (statement.run()) return {};
  return Error{database_->error().message};
}

}  // namespace tidemark
