// The contract of an analysis of single recordings, as commands and pages see it, and the list of them. How their
// results are written, apart from JSON, is in report/formats.cpp.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "analyze/common/analysis_options.h"
#include "analyze/common/result_table.h"
#include "analyze/ledger/samples.h"
#include "base/result.h"
#include "query/results/results.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// The results of one analysis for one or more recordings. Not thread-safe.
class AnalysisRun {
 public:
  virtual ~AnalysisRun() = default;
  /// Analyses one more recording. Fails if the recording lacks the requested device, or other data that the analysis
  /// needs.
  virtual Result<void> add(const SampledOverview& recording, Symbols& symbols, const AnalysisOptions& options) = 0;
  /// The same for analyses that need every block (Analysis::needs_blocks).
  virtual Result<void> add(const Store& recording, Symbols& symbols, const AnalysisOptions& options) = 0;
  /// All results as JSON. Other formats: report/formats.h.
  [[nodiscard]] virtual Result<std::string> json() const = 0;
  /// Whether a check requested by the options has failed.
  [[nodiscard]] virtual bool check_failed(const AnalysisOptions& options) const = 0;
};

/// The functions of an analysis with a result of type R.
template <typename R>
class ResultsOf : public AnalysisRun {
 public:
  [[nodiscard]] const std::vector<R>& results() const { return results_; }

 protected:
  std::vector<R> results_;
};

/// Help and options of an analysis.
struct AnalysisInfo {
  std::string name;   ///< of its command, and of its results in a page's data
  std::string help;   ///< one line
  std::string about;  ///< more sentences for the command's help; may be empty
  std::vector<AnalysisOption> options;
  bool takes_moment = false;            ///< whether AnalysisOptions::at means something
  std::vector<std::string> examples{};  ///< arguments after "tidemark NAME "
  bool takes_filter = false;            ///< whether AnalysisOptions::filter means something
  bool filters_lists = false;           ///< to its lists of holders only: totals remain the device's
  bool can_follow = false;              ///< a recording in progress, again and again
  bool has_first_screen = false;        ///< text is short unless all of it is requested
};

struct Analysis : AnalysisInfo {
  bool needs_blocks = true;  ///< needs a Store; otherwise a SampledOverview suffices, which takes little memory
  std::function<std::unique_ptr<AnalysisRun>()> start;
  /// For pages, which write tables of any analysis; empty if the result is not a table.
  std::function<Result<ResultTable>(const Store& store, Symbols& symbols, const AnalysisOptions& options)> table;
  /// Reads the description of the result; the name of its type.
  std::function<std::string(ResultTypes& types)> describe;
};

/// In the order of help.
[[nodiscard]] const std::vector<Analysis>& analyses();

/// An analysis with its own result type. `Recording` is Store, Overview or SampledOverview.
template <typename R, typename Recording>
struct AnalysisParts {
  AnalysisInfo info;
  std::function<Result<R>(const Recording& recording, Symbols& symbols, const AnalysisOptions& options)> analyze;
  bool (*check_failed)(const R& result, const AnalysisOptions& options) = nullptr;
  /// The JSON of all results, if that is not a list of the single ones.
  Result<std::string> (*json)(const std::vector<R>& results) = nullptr;
};

template <typename R, typename Recording>
[[nodiscard]] Analysis make_analysis(AnalysisParts<R, Recording> parts);
/// An analysis with a table as its result.
[[nodiscard]] Analysis make_analysis(TableAnalysis table);

// ---------------------------------------------------------------------------------------------------------------------

template <typename R, typename Recording>
class TypedRun final : public ResultsOf<R> {
 public:
  explicit TypedRun(std::shared_ptr<const AnalysisParts<R, Recording>> parts) : parts_(std::move(parts)) {}

  Result<void> add(const SampledOverview& recording, Symbols& symbols, const AnalysisOptions& options) override {
    if constexpr (std::is_convertible_v<const SampledOverview&, const Recording&>) {
      return keep(parts_->analyze(recording, symbols, options), options);
    } else {
      return Error{recording.path + ": read without its blocks"};
    }
  }
  Result<void> add(const Store& recording, Symbols& symbols, const AnalysisOptions& options) override {
    if constexpr (std::is_convertible_v<const Store&, const Recording&>) {
      return keep(parts_->analyze(recording, symbols, options), options);
    } else {
      return Error{recording.path + ": read with its blocks"};
    }
  }
  [[nodiscard]] Result<std::string> json() const override {
    if (parts_->json != nullptr) return parts_->json(this->results_);
    return to_json(std::span<const R>(this->results_));
  }
  [[nodiscard]] bool check_failed(const AnalysisOptions& options) const override {
    if (parts_->check_failed == nullptr) return false;
    for (const R& result : this->results_) {
      if (parts_->check_failed(result, options)) return true;
    }
    return false;
  }

 private:
  Result<void> keep(Result<R> result, const AnalysisOptions& options) {
    if (!result) return result.error();
    result->recording.chosen_blocks = filter_text(options.filter);
    this->results_.push_back(std::move(*result));
    return {};
  }

  std::shared_ptr<const AnalysisParts<R, Recording>> parts_;
};

template <typename R, typename Recording>
Analysis make_analysis(AnalysisParts<R, Recording> parts) {
  Analysis analysis;
  static_cast<AnalysisInfo&>(analysis) = parts.info;
  analysis.needs_blocks = std::is_same_v<Recording, Store>;
  analysis.describe = [name = parts.info.name](ResultTypes& types) {
    return types.read<R>(DescribedResults::module_of(name));
  };
  analysis.start = [parts = std::make_shared<const AnalysisParts<R, Recording>>(std::move(parts))] {
    return std::make_unique<TypedRun<R, Recording>>(parts);
  };
  return analysis;
}

}  // namespace tidemark
