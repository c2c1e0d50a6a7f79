#include "publish/history/history_writer.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "publish/device_id.h"
#include "publish/history/schema.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxBatches = 64;
constexpr std::chrono::seconds kFlushInterval{5};
constexpr std::chrono::milliseconds kPatienceWithHistory{3000};  // at the end
constexpr std::chrono::minutes kCareInterval{10};
constexpr std::int64_t kNsInMs = 1'000'000;
constexpr const char* kDamaged = "damaged, or no history: nothing is written to it (move it away)";

}  // namespace

HistoryWriter::HistoryWriter(HistoryOptions options)
    : options_(std::move(options)), worker_(kMaxBatches, [this](const std::string& why) {
        options_.problem(fmt::format("{}: {}", options_.path, why));
      }) {}

HistoryWriter::~HistoryWriter() {
  flush(true);
  worker_.finish(kPatienceWithHistory);
}

void HistoryWriter::add(const MachineState& state) {
  collector_.add(state);
  latest_ms_ = static_cast<std::int64_t>(state.now_wall_ns / static_cast<std::uint64_t>(kNsInMs));
  const auto now = std::chrono::steady_clock::now();
  if (now < next_flush_) return;
  next_flush_ = now + kFlushInterval;
  flush(false);
}

void HistoryWriter::add(const RiskChange& change, const WatchedDevice* device, std::string assessment) {
  waiting_.events.push_back({static_cast<std::int64_t>(change.wall_ns / static_cast<std::uint64_t>(kNsInMs)),
                             device == nullptr ? "host" : device_id(*device), change.device,
                             std::string(name_of(change.before)), std::string(name_of(change.now.level)),
                             std::move(assessment)});
}

void HistoryWriter::flush(bool all) {
  HistoryBatch batch = std::exchange(waiting_, {});
  batch.rows = collector_.take(all ? std::numeric_limits<std::int64_t>::max() : latest_ms_);
  if (batch.rows.empty() && batch.events.empty()) return;
  worker_.add([this, batch = std::move(batch), now = latest_ms_] { write(batch, now); });
}

void HistoryWriter::write(const HistoryBatch& batch, std::int64_t now_ms) {
  if (given_up_ || (!database_ && !open())) return worker_.count_dropped();
  if (!write_rows(batch)) {
    tell(database_->error());
    database_->execute("ROLLBACK");
    series_.clear();  // some may have been rolled back
    return worker_.count_dropped();
  }
  if (!std::exchange(told_, "").empty()) options_.problem(fmt::format("{}: history is written again", options_.path));
  const auto now = std::chrono::steady_clock::now();
  if (now < next_care_) return;
  next_care_ = now + kCareInterval;
  series_.clear();  // those without points go
  if (!take_care(*database_, now_ms, options_.keep)) tell(database_->error());
}

bool HistoryWriter::open() {
  DatabaseError error;
  auto database = Database::open(options_.path, DatabaseUse::write, error);
  if (!database) {
    tell(error);
    return false;
  }
  SchemaState state = schema_of(*database);
  if (state == SchemaState::empty && create_schema(*database)) state = SchemaState::ours;
  if (state == SchemaState::ours && !is_whole(*database)) {
    given_up_ = true;
    tell(kDamaged);
    return false;
  }
  if (state == SchemaState::ours) {
    // What was not written when the machine loses power is lost; the file stays whole.
    database->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=8388608");
    database_ = std::move(database);
    return true;
  }
  given_up_ = state == SchemaState::foreign || state == SchemaState::newer;
  if (state == SchemaState::foreign) {
    tell("not a history of Tidemark: nothing is written to it (name another file)");
  } else if (state == SchemaState::newer) {
    tell("made by a newer version of Tidemark: nothing is written to it (name another file)");
  } else {
    tell(database->error());
  }
  return false;
}

bool HistoryWriter::write_rows(const HistoryBatch& batch) {
  if (!database_->execute("BEGIN IMMEDIATE")) return false;
  Statement point = database_->prepare(
      "INSERT INTO points(series, time, span, high, mean, count, bound) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) "
      "ON CONFLICT(series, time) DO UPDATE SET high = max(high, excluded.high)");
  for (const HistoryRow& row : batch.rows) {
    const auto id = series(row.key);
    if (!id) return false;
    point.bind(1, *id).bind(2, row.time_ms).bind(3, row.span_ms).bind(4, row.high_bytes);
    if (!point.bind(5, row.mean_bytes).bind(6, row.count).bind(7, row.limit_bytes).run()) return false;
  }
  Statement risk = database_->prepare("INSERT INTO risks VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  for (const HistoryEvent& event : batch.events) {
    risk.bind(1, event.time_ms).bind(2, event.device).bind(3, event.key).bind(4, event.before).bind(5, event.level);
    if (!risk.bind(6, event.assessment).run()) return false;
  }
  return database_->execute("COMMIT");
}

std::optional<std::int64_t> HistoryWriter::series(const HistoryKey& key) {
  const auto [found, is_new] = series_.try_emplace(key, 0);
  if (!is_new) return found->second;
  Statement insert = database_->prepare(
      "INSERT INTO series(device, key, name, pid, process) VALUES(?1, ?2, ?3, ?4, ?5) "
      "ON CONFLICT(device, key, pid, process) DO UPDATE SET name = excluded.name RETURNING id");
  insert.bind(1, key.device).bind(2, key.key).bind(3, key.name).bind(4, key.pid).bind(5, key.process);
  if (!insert.step()) {
    series_.erase(found);
    return std::nullopt;
  }
  found->second = insert.integer(0);
  return found->second;
}

void HistoryWriter::tell(const DatabaseError& error) {
  if (error.is_damaged()) {
    given_up_ = true;
    tell(kDamaged);
  } else if (error.is_full()) {
    tell(fmt::format("cannot be written ({}): history has a gap until there is space", error.message));
  } else if (error.is_busy()) {
    tell("another program has it locked: history has a gap until it is free");
  } else {
    tell(fmt::format("cannot be written: {}", error.message));
  }
}

void HistoryWriter::tell(const std::string& text) {
  if (std::exchange(told_, text) != text) options_.problem(fmt::format("{}: {}", options_.path, text));
}

}  // namespace tidemark
