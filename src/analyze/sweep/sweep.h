// A program with every combination of some arguments on some GPUs: results of trials, and predictions for the rest.
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
  std::optional<std::uint64_t> memory_bytes;   ///< of each device; nullopt for a real GPU before its first trial
  std::optional<std::uint64_t> context_bytes;  ///< of a planned GPU; nullopt for a real one
};

/// Prediction for a configuration, from the laws and from other trials: if one ran out of memory, larger values do not
/// fit either.
struct Prediction {
  std::optional<std::uint64_t> peak_allocated_bytes;  ///< nullopt if the laws have no trials of its group
  std::optional<std::uint64_t> peak_reserved_bytes;
  std::optional<bool> fits;
};

struct SweepRow {
  std::size_t gpu = 0;                   ///< index into Sweep::gpus
  std::vector<std::string> values;       ///< by argument
  std::optional<TrialResult> result;     ///< nullopt: it has not run
  std::string folder;                    ///< of the trial's files, below the sweep's folder; empty: it has not run
  std::optional<Prediction> prediction;  ///< if there are no peaks, or only peaks until a failed request

  /// Whether its peaks cover the whole program.
  [[nodiscard]] bool measured() const { return result && result->peak_allocated_bytes && !result->out_of_memory; }
  /// As measured or, if it has not run, as predicted; nullopt if neither is known.
  [[nodiscard]] std::optional<bool> fits() const;
};

struct CategoryLaw {
  Category category = Category::unknown;
  Law law;  ///< of its memory at the peak of allocated memory
};

struct Sweep {
  std::vector<std::string> program;
  std::vector<VariedArgument> arguments;
  std::vector<SweptGpu> gpus;
  std::vector<SweepRow> rows;  ///< all combinations: by GPU, then the last argument changes fastest
  std::optional<Law> allocated;
  std::optional<Law> reserved;
  std::vector<CategoryLaw> by_category;  ///< for categories that hold memory in every trial with categories

  /// Indexes of the arguments with only numeric values.
  [[nodiscard]] std::vector<std::size_t> numeric() const;
  /// Names of the groups that laws may distinguish: values of the other arguments, and the GPU if there are several;
  /// empty for the only group.
  [[nodiscard]] std::vector<std::string> groups() const;
  [[nodiscard]] std::size_t group_of(const SweepRow& row) const;
  [[nodiscard]] std::vector<double> numbers_of(const SweepRow& row) const;
};

/// A number as programs take it on their command line: "128", "0.5", "1e-4".
[[nodiscard]] std::optional<double> number_of(std::string_view text);

/// Whether a combination of values, one for each argument, is tried; empty: all are.
using KeepsCombination = std::function<bool(const std::vector<std::string>& values)>;

/// Adds all kept combinations, without results. Their number is limited to a std::size_t.
void add_combinations(Sweep& sweep, const KeepsCombination& keeps = nullptr);

/// Finds the laws, and predicts rows without peaks.
void predict(Sweep& sweep);

/// The row with the most informative trial: alternately the row with the least certain prediction and the row predicted
/// nearest to the memory of its GPU; before there is a law, the row farthest from the rows that ran. nullopt if all
/// have run. Call predict() first.
[[nodiscard]] std::optional<std::size_t> next_row(const Sweep& sweep, const std::vector<bool>& taken);

}  // namespace tidemark
