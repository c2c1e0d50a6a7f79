// A sweep of DP-SGD training: the final report of presets/dp_sgd.py, and all results as text, CSV and pictures, and as
// the files of the folder.
#pragma once

#include <string>
#include <string_view>

#include "analyze/sweep/dp_sgd.h"
#include "base/result.h"
#include "report/chart/chart.h"
#include "report/common/terminal.h"

namespace tidemark {

/// From the last line "DP_SGD {...}" of its output. Fails if there is none, or it is invalid.
[[nodiscard]] Result<DpSgdReport> parse_dp_sgd(std::string_view output);

/// Report of an ended trial, from its files in `folder`.
[[nodiscard]] Result<DpSgdReport> read_dp_sgd(const std::string& folder);

/// With the reports of its trials, from their files in `folder`.
[[nodiscard]] DpSgdSweep read_dp_sgd_sweep(const Sweep& sweep, const std::string& model, const std::string& folder);

/// The text after a sweep's own text.
[[nodiscard]] std::string to_text(const DpSgdSweep& result, const Terminal& terminal);

/// One row for each configuration, with the bytes of each kind and the peak of each phase.
[[nodiscard]] std::string to_csv(const DpSgdSweep& result);

/// Memory attached to the parameters, by component: a panel for each kind.
Result<std::string> draw_dp_sgd_components(const DpSgdSweep& result, ChartFormat format);
/// The peaks of phases, a panel for each configuration with one of the highest peaks.
Result<std::string> draw_dp_sgd_phases(const DpSgdSweep& result, ChartFormat format);

/// Writes its files into the folder. `plot` is "png", "svg" or "none".
Result<void> write_dp_sgd_files(const DpSgdSweep& result, const std::string& folder, const std::string& plot);

}  // namespace tidemark
