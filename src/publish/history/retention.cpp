// The older points are, the longer the span that each covers.
#include <fmt/format.h>

#include <array>

#include "publish/history/history_writer.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;

constexpr std::array<HistoryTier, 3> kTiers = {{{1h, 10s}, {24h, 60s}, {7 * 24h, 600s}}};
constexpr std::int64_t kMsPerSecond = 1000;
constexpr int kPagesAtATime = 2000;  // returned to the file system

bool join_points(Database& database, std::int64_t now_ms, const HistoryTier& tier) {
  const std::int64_t span = tier.span.count() * kMsPerSecond;
  const std::int64_t before = (now_ms - tier.older_than.count() * kMsPerSecond) / span * span;
  const std::string finer = fmt::format("time < {} AND span < {}", before, span);
  if (database.number(fmt::format("SELECT EXISTS(SELECT 1 FROM points WHERE {})", finer)).value_or(0) == 0) return true;
  // A mean of means is weighted by their samples. total() is a float: no sum of sizes overflows.
  return database.execute(fmt::format(
      "DELETE FROM temp.joined;"
      "INSERT INTO temp.joined SELECT series, time / {0} * {0}, {0}, max(high), "
      "CAST(round(total(1.0 * mean * count) / total(count)) AS INTEGER), CAST(total(count) AS INTEGER), max(bound) "
      "FROM points WHERE {1} GROUP BY series, time / {0};"
      "DELETE FROM points WHERE {1};"
      "INSERT OR REPLACE INTO points SELECT * FROM temp.joined",
      span, finer));
}

}  // namespace

bool maintain(Database& database, std::int64_t now_ms, std::chrono::seconds keep) {
  if (!database.execute("CREATE TEMP TABLE IF NOT EXISTS joined(series, time, span, high, mean, count, bound);"
                        "BEGIN IMMEDIATE")) {
    return false;
  }
  bool done = true;
  for (const HistoryTier& tier : kTiers) done = done && join_points(database, now_ms, tier);
  const std::int64_t oldest = now_ms - keep.count() * kMsPerSecond;
  done = done && database.execute(fmt::format("DELETE FROM points WHERE time + span < {0};"
                                              "DELETE FROM risks WHERE time < {0};"
                                              "DELETE FROM series WHERE id NOT IN (SELECT series FROM points);"
                                              "COMMIT",
                                              oldest));
  if (!done) {
    database.execute("ROLLBACK");
    return false;
  }
  return database.execute(fmt::format("PRAGMA incremental_vacuum({})", kPagesAtATime));
}

}  // namespace tidemark
