#include "publish/history/history_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "monitor/device_keys.h"
#include "publish/history/database.h"
#include "publish/history/history.h"

namespace tidemark {

namespace {

constexpr std::size_t kMaxBatches = 64;
constexpr std::chrono::seconds kFlushInterval{5};
constexpr std::chrono::milliseconds kPatienceWithHistory{3000};  // at the end
constexpr std::chrono::minutes kCareInterval{10};
constexpr std::int64_t kNsInMs = 1'000'000;
constexpr const char* kDamaged = "damaged, or no history: nothing is written to it (move it away)";

constexpr std::int64_t kNsPerMs = 1'000'000;

std::int64_t as_integer(std::uint64_t value) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  return value > static_cast<std::uint64_t>(kMax) ? kMax : static_cast<std::int64_t>(value);
}

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
    report(database_->error());
    database_->execute("ROLLBACK");
    series_.clear();  // some may have been rolled back
    return worker_.count_dropped();
  }
  if (!std::exchange(told_, "").empty()) options_.problem(fmt::format("{}: history is written again", options_.path));
  const auto now = std::chrono::steady_clock::now();
  if (now < next_care_) return;
  next_care_ = now + kCareInterval;
  series_.clear();  // drops series without points
  if (!maintain(*database_, now_ms, options_.keep)) report(database_->error());
}

bool HistoryWriter::open() {
  DatabaseError error;
  auto database = Database::open(options_.path, DatabaseUse::write, error);
  if (!database) {
    report(error);
    return false;
  }
  SchemaState state = schema_of(*database);
  // SQLite's own check accepts some records that no query can read.
  if ((state == SchemaState::ours || state == SchemaState::empty) &&
      (!is_whole(*database) ||
       !read_history(options_.path, {.since_ms = {}, .until_ms = std::numeric_limits<std::int64_t>::max()}))) {
    given_up_ = true;
    report(kDamaged);
    return false;
  }
  if (state == SchemaState::empty && create_schema(*database)) state = SchemaState::ours;
  if (state == SchemaState::ours) {
    // Unwritten data is lost if the machine loses power; the file stays consistent.
    database->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=8388608");
    database_ = std::move(database);
    return true;
  }
  given_up_ = state == SchemaState::foreign || state == SchemaState::newer;
  if (state == SchemaState::foreign) {
    report(
        "not a history of Tidemark, or with tables or indexes of another program: nothing is written to it (name "
        "another file)");
  } else if (state == SchemaState::newer) {
    report("made by a newer version of Tidemark: nothing is written to it (name another file)");
  } else {
    report(database->error());
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

void HistoryWriter::report(const DatabaseError& error) {
  if (error.is_damaged()) {
    given_up_ = true;
    report(kDamaged);
  } else if (error.is_full()) {
    report(fmt::format("cannot be written ({}): history has a gap until there is space", error.message));
  } else if (error.is_busy()) {
    report("another program has it locked: history has a gap until it is free");
  } else {
    report(fmt::format("cannot be written: {}", error.message));
  }
}

void HistoryWriter::report(const std::string& text) {
  if (std::exchange(told_, text) != text) options_.problem(fmt::format("{}: {}", options_.path, text));
}

void HistoryCollector::add(const MachineState& state) {
  const auto wall_ms = [&](std::uint64_t ns) { return as_integer(state.wall_ns(ns)) / kNsPerMs; };
  const auto add_usage = [&](const HistoryKey& key, const WatchedUsage& used,
                             const std::optional<std::uint64_t>& limit) {
    Seen& seen = seen_[key];
    if (used.sample_count() < seen.samples) seen = {};  // another process with that PID
    seen.look = looks_;
    std::uint64_t number = used.sample_count() - used.newest().size();
    for (const WatchedSample& sample : used.newest()) {
      if (++number < seen.samples) continue;
      if (number > seen.samples) {
        add(key, wall_ms(sample.time_ns), sample, limit);
      } else if (sample.high_bytes > seen.high) {
        raise(key, wall_ms(sample.time_ns), sample, limit);
      }
      seen.samples = number;
      seen.high = sample.high_bytes;
    }
  };
  ++looks_;
  const HistoryKey host{"host", kHostKey, "", 0, ""};
  for (const WatchedDevice& device : state.devices) {
    if (device.is_host) continue;  // handled below, as on other machines
    add_usage({device_id(device), device.key, device.info.name, 0, ""}, device.used, device.limit_bytes());
  }
  add_usage(host, state.host.used, state.host.limit_bytes());
  for (const WatchedProcess& process : state.processes) {
    if (process.ended) continue;
    for (const ProcessOnDevice& part : process.devices) {
      const WatchedDevice& device = state.devices.at(part.device);
      if (!part.held || device.is_host) continue;
      add_usage({device_id(device), device.key, device.info.name, process.pid, process.name}, part.used, std::nullopt);
    }
    HistoryKey resident = host;
    resident.pid = process.pid;
    resident.process = process.name;
    add_usage(resident, process.rss, std::nullopt);
  }
}

void HistoryCollector::add(const HistoryKey& key, std::int64_t time_ms, const WatchedSample& sample,
                           const std::optional<std::uint64_t>& limit) {
  const std::int64_t begin = time_ms - time_ms % kSpanMs;
  Sum& sum = open_.try_emplace(key, Sum{.time_ms = begin}).first->second;
  if (sum.time_ms != begin) {
    close(key, sum);
    sum = Sum{.time_ms = begin};
  }
  sum.high = std::max(sum.high, sample.high_bytes);
  sum.sum += static_cast<double>(sample.bytes);
  ++sum.count;
  sum.limit = limit;
}

// Recorders reported a higher peak after a sample was taken. If its row has been passed on, a second row for the same
// time only raises the peak.
void HistoryCollector::raise(const HistoryKey& key, std::int64_t time_ms, const WatchedSample& sample,
                             const std::optional<std::uint64_t>& limit) {
  Sum raised{.time_ms = time_ms - time_ms % kSpanMs,
             .high = sample.high_bytes,
             .sum = static_cast<double>(sample.bytes),
             .count = 1,
             .limit = limit};
  const auto open = open_.find(key);
  if (open == open_.end() || open->second.time_ms != raised.time_ms) return close(key, raised);
  open->second.high = std::max(open->second.high, raised.high);
}

void HistoryCollector::close(const HistoryKey& key, const Sum& sum) {
  const double mean = sum.sum / static_cast<double>(sum.count);
  done_.push_back({key, sum.time_ms, kSpanMs, as_integer(sum.high), static_cast<std::int64_t>(mean), sum.count,
                   sum.limit ? std::optional(as_integer(*sum.limit)) : std::nullopt});
}

std::vector<HistoryRow> HistoryCollector::take(std::int64_t before_ms) {
  std::erase_if(open_, [&](const auto& one) {
    const bool complete = one.second.time_ms + kSpanMs <= before_ms;
    if (complete) close(one.first, one.second);
    return complete;
  });
  constexpr std::size_t kMaxKeys = 4096;
  if (seen_.size() > kMaxKeys) {  // forget keys of processes that have ended
    std::erase_if(seen_, [this](const auto& one) { return one.second.look != looks_; });
  }
  return std::exchange(done_, {});
}

}  // namespace tidemark
