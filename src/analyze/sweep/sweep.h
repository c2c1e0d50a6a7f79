// A program with every combination of some arguments on some GPUs: what was tried, and what follows for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/sweep/law.h"
#include "analyze/sweep/trial.h"

namespace tidemark {

struct SweptGpu {
  std::string name;
  std::string option;                          ///< as --gpu names it; empty: a real GPU
  std::optional<std::uint64_t> memory_bytes;   ///< of each device; none of a real GPU before its first trial
  std::optional<std::uint64_t> context_bytes;  ///< of a planned GPU; none of a real one
};

/// What the laws say of a configuration, and other trials: where one ran out of memory, larger values do not fit
/// either.
struct Prediction {
  std::optional<std::uint64_t> peak_allocated_bytes;  ///< none where the laws have no trials of its group
  std::optional<std::uint64_t> peak_reserved_bytes;
  std::optional<bool> fits;
};

struct SweepRow {
  std::size_t gpu = 0;                   ///< index into Sweep::gpus
  std::vector<std::string> values;       ///< by argument
  std::optional<TrialResult> result;     ///< none: it has not run
  std::string folder;                    ///< of the trial's files, below that of the sweep; empty: it has not run
  std::optional<Prediction> prediction;  ///< where there are no peaks, or they are those until a request failed

  /// Its peaks are those of the whole program.
  [[nodiscard]] bool measured() const { return result && result->peak_allocated_bytes && !result->out_of_memory; }
  /// As measured or, where it has not run, as predicted; none where neither is known.
  [[nodiscard]] std::optional<bool> fits() const;
};

struct CategoryLaw {
  Category category = Category::unknown;
  Law law;  ///< of what it holds at the peak of allocated memory
};

struct Sweep {
  std::vector<std::string> program;
  std::vector<VariedArgument> arguments;
  std::vector<SweptGpu> gpus;
  std::vector<SweepRow> rows;  ///< all combinations: by GPU, then the last argument changes fastest
  std::optional<Law> allocated;
  std::optional<Law> reserved;
  std::vector<CategoryLaw> by_category;  ///< of the categories that hold memory in every trial that says

  /// Indexes of the arguments whose values are all numbers.
  [[nodiscard]] std::vector<std::size_t> numeric() const;
  /// Words for the groups that laws may tell apart: the values of the other arguments, and the GPU where there are
  /// several; empty for the only group.
  [[nodiscard]] std::vector<std::string> groups() const;
  [[nodiscard]] std::size_t group_of(const SweepRow& row) const;
  [[nodiscard]] std::vector<double> numbers_of(const SweepRow& row) const;
};

/// A number as programs take it on their command line: "128", "0.5", "1e-4".
[[nodiscard]] std::optional<double> number_of(std::string_view text);

/// Whether a combination of values, one for each argument, is tried; empty: all are.
using KeepsCombination = std::function<bool(const std::vector<std::string>& values)>;

/// All combinations that are kept, without results. At most so many as a std::size_t holds.
void add_combinations(Sweep& sweep, const KeepsCombination& keeps = nullptr);

/// Finds the laws, and predicts what has no peaks.
void predict(Sweep& sweep);

/// The row whose trial says most: in turn the one whose prediction is least certain and the one predicted nearest to
/// the memory of its GPU; before there is a law, the one farthest from those that ran. None where all have run. Call
/// predict() before.
[[nodiscard]] std::optional<std::size_t> next_row(const Sweep& sweep, const std::vector<bool>& taken);

}  // namespace tidemark
