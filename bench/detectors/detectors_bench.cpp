// Runs all monitors over labelled runs and prints their scores.
//
//   detectors_bench [--seed N] [--seeds N] [--runs N] [--kind NAME] [--recorded FILE] [--wrong] [--fit]
//
// --seed N: of the generated runs; --seeds N: this many from it on. Thresholds were chosen on the seeds 1 to 36; the
// published tables use others. --runs N: of each generated kind. --kind: only that one. --recorded: a file of recorded
// runs, in addition to generated ones unless --runs is 0. --wrong: the errors of each monitor, run by run. --fit: the
// table of confidences in calibration.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "generate.h"
#include "monitors.h"
#include "recorded.h"
#include "score.h"

namespace tidemark::detectors {
namespace {

constexpr double kMaxConfident = 0.999;  // for a few runs with similar assessments

struct Arguments {
  std::uint64_t seed = 1001;
  std::uint64_t seeds = 1;
  std::uint64_t runs = 11;
  std::string kind;
  std::string recorded;
  bool wrong = false;
  bool fit = false;
};

std::string percentile(std::vector<double> values, double share, const char* format) {
  if (values.empty()) return "n/a";
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return fmt::format(fmt::runtime(format), *place);
}

std::string ratio(double value) {
  return std::isnan(value) ? "n/a" : fmt::format("{:.3f}", value);
}

void print_row(std::string_view name, const std::vector<std::string>& values) {
  std::string row = fmt::format("| {:44} |", name);
  for (const std::string& value : values) row += fmt::format(" {:>21} |", value);
  std::puts(row.c_str());
}

template <typename Value>
void print_rows(const std::vector<Score>& scores, std::string_view name, Value value) {
  std::vector<std::string> values;
  for (const Score& score : scores) values.push_back(value(score));
  print_row(name, values);
}

void print_scores(const std::vector<Score>& scores) {
  print_rows(scores, "", [](const Score& s) { return s.monitor; });
  print_row("---", {"---:", "---:", "---:"});
  print_rows(scores, "runs", [](const Score& s) { return fmt::format("{}", s.runs); });
  print_rows(scores, "out of memory: recall",
             [](const Score& s) { return fmt::format("{} ({}/{})", ratio(s.recall()), s.foreseen, s.foreseeable); });
  print_rows(scores, "out of memory: precision", [](const Score& s) {
    return fmt::format("{} ({}/{})", ratio(s.precision()), s.right_runs, s.right_runs + s.false_runs);
  });
  print_rows(scores, "alarm 60 s or 20 steps before the limit",
             [](const Score& s) { return fmt::format("{}/{}", s.in_time, s.foreseeable); });
  print_rows(scores, "false alarms per healthy hour", [](const Score& s) {
    return fmt::format("{:.3f} ({} in {:.0f} h)", static_cast<double>(s.false_alarms) / s.healthy_hours, s.false_alarms,
                       s.healthy_hours);
  });
  print_rows(scores, "lead time: median, s", [](const Score& s) { return percentile(s.lead_seconds, 0.5, "{:.0f}"); });
  print_rows(scores, "lead time: 5% of alarms have less, s",
             [](const Score& s) { return percentile(s.lead_seconds, 0.05, "{:.0f}"); });
  print_rows(scores, "lead time: median, steps",
             [](const Score& s) { return percentile(s.lead_steps, 0.5, "{:.0f}"); });
  print_rows(scores, "predicted time: median error, % of the true one", [](const Score& s) {
    std::vector<double> percent;
    for (const double error : s.errors) percent.push_back(100 * error);
    return percentile(percent, 0.5, "{:.1f}");
  });
  print_rows(scores, "leaks: recall", [](const Score& s) {
    return fmt::format("{} ({}/{})", ratio(s.leak_recall()), s.leaks_found, s.leaking);
  });
  print_rows(scores, "leaks: precision", [](const Score& s) {
    return fmt::format("{} ({}/{})", ratio(s.leak_precision()), s.leaks_found, s.leaks_found + s.false_leaks);
  });
  print_rows(scores, "leaks: found after, median s",
             [](const Score& s) { return percentile(s.leak_delay, 0.5, "{:.0f}"); });
  print_rows(scores, "growth that may be a leak or not: called one",
             [](const Score& s) { return fmt::format("{}/{}", s.undecidable_found, s.undecidable); });
}

void print_calibration(const Calibration& calibration) {
  std::puts("\nConfidence: assessments, mean confidence, share that was right, by class of evidence");
  for (std::size_t level = 0; level < calibration.cells.size(); ++level) {
    std::string row = fmt::format("| {:8} |", name_of(static_cast<RiskLevel>(level)));
    for (const Calibration::Cell& cell : calibration.cells[level]) {
      const auto count = static_cast<double>(cell.assessments);
      row += cell.assessments == 0 ? fmt::format(" {:>20} |", "0")
                                   : fmt::format(" {:6} {:.3f} {:.3f} |", cell.assessments, cell.confidence / count,
                                                 static_cast<double>(cell.right) / count);
    }
    std::puts(row.c_str());
  }
  if (calibration.intervals > 0) {
    std::puts(fmt::format("90% intervals of the time to the limit: {:.1f}% of {} had the true time in them",
                          100 * static_cast<double>(calibration.inside) / static_cast<double>(calibration.intervals),
                          calibration.intervals)
                  .c_str());
  }
}

// A few assessments give little evidence: half of one is assumed to be wrong (Laplace's rule for small numbers).
void print_fit(const Calibration& calibration) {
  std::puts("constexpr double kRight[4][kEvidenceClasses] = {");
  for (const auto& level : calibration.cells) {
    std::string row = "    {";
    for (const Calibration::Cell& cell : level) {
      const double right = std::min(
          kMaxConfident, (static_cast<double>(cell.right) + 0.5) / (static_cast<double>(cell.assessments) + 1));
      row += fmt::format("{}{:.3f}", row.size() > 5 ? ", " : "", right);
    }
    std::puts((row + "},").c_str());
  }
  std::puts("};");
}

int run(const Arguments& arguments) {
  std::vector<Score> scores;
  const auto factories = {our_monitor, slope_monitor, threshold_monitor};
  for (const auto& factory : factories) scores.emplace_back().monitor = factory()->name();
  const auto watch_all = [&](const LabelledRun& run, const std::string& name) {
    std::size_t place = 0;
    for (const auto& factory : factories) {
      Score& score = scores[place++];
      const auto monitor = factory();
      const Outcome outcome = watch(run, *monitor, score.calibration);
      const std::string wrong = add_outcome(run, outcome, score);
      if (arguments.wrong && place == 1 && !wrong.empty()) {
        std::puts(fmt::format("{}: {}[{} samples, {:.0f}-{:.0f} s, step {:.2f} s, limit at {:.0f}, grows from {:.0f}]",
                              name, wrong, run.samples.size(), run.begin(), run.end(), run.seconds_per_step,
                              run.limit_at.value_or(-1), run.grows_from)
                      .c_str());
      }
    }
  };
  for (const std::string_view kind : kinds()) {
    if (!arguments.kind.empty() && kind.find(arguments.kind) == kind.npos) continue;
    for (std::uint64_t seed = arguments.seed; seed < arguments.seed + arguments.seeds; ++seed) {
      for (std::uint64_t number = 0; number < arguments.runs; ++number) {
        watch_all(generate(kind, seed, number), fmt::format("{} {} {}", kind, seed, number));
      }
    }
  }
  if (!arguments.recorded.empty()) {
    const auto recorded = read_recorded(arguments.recorded);
    if (!recorded.ok()) {
      std::fprintf(stderr, "detectors_bench: %s\n", recorded.error().message.c_str());
      return 2;
    }
    for (const LabelledRun& run : recorded.value()) watch_all(run, run.kind);
  }
  print_scores(scores);
  if (arguments.fit) {
    print_fit(scores.front().calibration);
  } else {
    print_calibration(scores.front().calibration);
  }
  return 0;
}

}  // namespace
}  // namespace tidemark::detectors

int main(int argc, char** argv) {
  tidemark::detectors::Arguments arguments;
  for (int index = 1; index < argc; ++index) {
    const std::string_view option = argv[index];
    const auto value = [&] { return index + 1 < argc ? argv[++index] : ""; };
    if (option == "--seed") {
      arguments.seed = std::strtoull(value(), nullptr, 10);
    } else if (option == "--seeds") {
      arguments.seeds = std::strtoull(value(), nullptr, 10);
    } else if (option == "--runs") {
      arguments.runs = std::strtoull(value(), nullptr, 10);
    } else if (option == "--kind") {
      arguments.kind = value();
    } else if (option == "--recorded") {
      arguments.recorded = value();
    } else if (option == "--wrong") {
      arguments.wrong = true;
    } else if (option == "--fit") {
      arguments.fit = true;
    } else {
      std::fprintf(stderr, "detectors_bench: %s: not an option\n", argv[index]);
      return 2;
    }
  }
  return tidemark::detectors::run(arguments);
}
