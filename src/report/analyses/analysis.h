// The contract of an analysis of single recordings, as commands and pages see it, and the list of them.
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
#include "report/common/json.h"
#include "report/common/recording_text.h"
#include "report/common/terminal.h"
#include "report/common/text.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// The results of one analysis for one or more recordings, and how they are written. Not thread-safe.
class AnalysisRun {
 public:
  virtual ~AnalysisRun() = default;
  /// Analyses one more recording. Fails when the device asked for is not in it, or what else the analysis needs.
  virtual Result<void> add(const SampledOverview& recording, Symbols& symbols, const AnalysisOptions& options) = 0;
  /// The same for analyses that need every block (Analysis::needs_blocks).
  virtual Result<void> add(const Store& recording, Symbols& symbols, const AnalysisOptions& options) = 0;
  /// All results as one of Analysis::formats. `terminal`: where text goes.
  [[nodiscard]] virtual Result<std::string> write(const std::string& format, const Terminal& terminal) const = 0;
  /// Whether the options ask to watch for something, and it was found.
  [[nodiscard]] virtual bool check_failed(const AnalysisOptions& options) const = 0;
};

/// What help says of an analysis, and what can be chosen.
struct AnalysisInfo {
  std::string name;   ///< of its command, and of its results in a page's data
  std::string help;   ///< one line
  std::string about;  ///< more sentences for the command's help; may be empty
  std::vector<AnalysisOption> options;
  bool takes_moment = false;            ///< whether AnalysisOptions::at means something
  std::vector<std::string> examples{};  ///< what follows "tidemark NAME "
  bool takes_filter = false;            ///< whether AnalysisOptions::filter means something
  bool filters_lists = false;           ///< to its lists of holders only: totals remain those of the device
  bool can_follow = false;              ///< a recording in progress, again and again
};

struct Analysis : AnalysisInfo {
  std::vector<std::string> formats;  ///< "text", "json", and perhaps "csv", "png", "svg"
  bool needs_blocks = true;          ///< a Store; otherwise a SampledOverview does, which takes little memory
  std::function<std::unique_ptr<AnalysisRun>()> start;
  /// For pages, which write tables of any analysis; empty where the result is none.
  std::function<Result<ResultTable>(const Store& store, Symbols& symbols, const AnalysisOptions& options)> table;
};

/// In the order in which help lists them.
[[nodiscard]] const std::vector<Analysis>& analyses();

/// How results of type R are written beside text and JSON, which every result has by its to_text() and to_json().
template <typename R>
struct AnalysisFormat {
  std::string name;
  Result<std::string> (*write)(const std::vector<R>& results);
};

/// An analysis with a result type of its own. `Recording` is Store, Overview or SampledOverview.
template <typename R, typename Recording>
struct AnalysisParts {
  AnalysisInfo info;
  std::function<Result<R>(const Recording& recording, Symbols& symbols, const AnalysisOptions& options)> analyze;
  std::vector<AnalysisFormat<R>> formats{};  ///< beside text and JSON
  bool (*check_failed)(const R& result, const AnalysisOptions& options) = nullptr;
  bool text_has_title = false;  ///< to_text() says which recording it is about
  /// Writes text and JSON of all results, where that is not one after the other.
  Result<std::string> (*write_all)(const std::vector<R>& results, const std::string& format,
                                   const Terminal& terminal) = nullptr;
};

template <typename R, typename Recording>
[[nodiscard]] Analysis make_analysis(AnalysisParts<R, Recording> parts);
/// An analysis whose result is a table.
[[nodiscard]] Analysis make_analysis(TableAnalysis table);

// ---------------------------------------------------------------------------------------------------------------------

/// Text of one result as it is, of several under a heading each.
template <typename R>
[[nodiscard]] std::string join_texts(const std::vector<R>& results, bool text_has_title, bool filters_lists,
                                     const Terminal& terminal) {
  std::string text;
  for (const R& result : results) {
    if (!text.empty()) text += "\n";
    if (results.size() > 1 && !text_has_title) {
      text += paint(terminal, Tone::heading, recording_title(result.recording)) + "\n";
    }
    text += chosen_blocks_text(result.recording, filters_lists);
    text += to_text(result, terminal);
  }
  return text;
}

template <typename R, typename Recording>
class TypedRun final : public AnalysisRun {
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
  [[nodiscard]] Result<std::string> write(const std::string& format, const Terminal& terminal) const override {
    if (parts_->write_all != nullptr) return parts_->write_all(results_, format, terminal);
    if (format == "json") return to_json(std::span<const R>(results_));
    for (const AnalysisFormat<R>& own : parts_->formats) {
      if (own.name == format) return own.write(results_);
    }
    return join_texts(results_, parts_->text_has_title, parts_->info.filters_lists, terminal);
  }
  [[nodiscard]] bool check_failed(const AnalysisOptions& options) const override {
    if (parts_->check_failed == nullptr) return false;
    for (const R& result : results_) {
      if (parts_->check_failed(result, options)) return true;
    }
    return false;
  }

 private:
  Result<void> keep(Result<R> result, const AnalysisOptions& options) {
    if (!result) return result.error();
    result->recording.chosen_blocks = filter_text(options.filter);
    results_.push_back(std::move(*result));
    return {};
  }

  std::shared_ptr<const AnalysisParts<R, Recording>> parts_;
  std::vector<R> results_;
};

template <typename R, typename Recording>
Analysis make_analysis(AnalysisParts<R, Recording> parts) {
  Analysis analysis;
  static_cast<AnalysisInfo&>(analysis) = parts.info;
  analysis.formats = {"text", "json"};
  for (const AnalysisFormat<R>& format : parts.formats) analysis.formats.push_back(format.name);
  analysis.needs_blocks = std::is_same_v<Recording, Store>;
  analysis.start = [parts = std::make_shared<const AnalysisParts<R, Recording>>(std::move(parts))] {
    return std::make_unique<TypedRun<R, Recording>>(parts);
  };
  return analysis;
}

}  // namespace tidemark
