#include "sweep/run_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/arithmetic.h"
#include "collect/machine/host_memory.h"
#include "sweep/kept_trials.h"
#include "sweep/trials.h"

namespace tidemark {
namespace {

// Settings shared by all trials of a folder, on one line.
std::string common_line(const SweepRequest& request) {
  nlohmann::ordered_json line = {{"format", "tidemark sweep"}, {"version", 1}};
  line["program"] = request.program.command();
  line["options"] = request.options;
  line["real"] = request.real;
  line["arguments"] = nlohmann::ordered_json::array();
  for (const VariedArgument& argument : request.program.arguments()) {
    line["arguments"].push_back({{"name", argument.name}, {"option", argument.option}});
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Host memory available to programs.
std::uint64_t free_host_bytes() {
  std::uint64_t bytes = read_host_memory().available_bytes.value_or(0);
  if (const auto group = Cgroup::of_this_process()) {
    const auto limit = group->limit_bytes();
    const std::uint64_t usage = group->read().usage_bytes.value_or(0);
    if (limit) bytes = std::min(bytes, *limit - std::min(*limit, usage));
  }
  return bytes;
}

class SweepRun {
 public:
  SweepRun(const SweepRequest& request, KeptTrials kept) : request_(request), kept_(std::move(kept)) {
    Sweep& sweep = outcome_.sweep;
    sweep.program = request.program.command();
    sweep.arguments = request.program.arguments();
    sweep.gpus = request.gpus;
    add_combinations(sweep, request.keeps);
    taken_.resize(sweep.rows.size());
    for (const KeptTrial& trial : kept_.trials()) take(trial);
  }

  Result<SweepOutcome> run(const std::function<void(const Sweep&, const SweepProgress&)>& show) {
    const Sweep& sweep = outcome_.sweep;
    StopSignals signals;
    while (!signals.stopped()) {
      if (const auto started = start_more(); !started) return started.error();
      if (running_.empty()) break;
      signals.wait(std::chrono::milliseconds(500));
      bool any = false;
      for (std::size_t index = 0; index < running_.size();) {
        const auto end = running_[index].process.ended();
        if (!end) {
          ++index;
          continue;
        }
        const std::size_t row = running_[index].row;
        if (const auto kept = finish(running_[index], *end); !kept) return kept.error();
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
        SweepProgress now = progress();
        now.finished = &sweep.rows[row];
        show(sweep, now);
        any = true;
      }
      if (!any) show(sweep, progress());
    }
    outcome_.stopped_by = signals.take().value_or(0);
    std::vector<std::string> unfinished;
    for (const Running& trial : running_) unfinished.push_back(request_.folder + "/" + trial.folder);
    running_.clear();  // ends them
    std::error_code ignored;
    for (const std::string& folder : unfinished) std::filesystem::remove_all(folder, ignored);
    predict(outcome_.sweep);
    return std::move(outcome_);
  }

 private:
  struct Running {
    std::size_t row = 0;
    std::string folder;
    TrialRequest request;
    BackgroundProcess process;
  };

  // Puts a trial of an earlier call into its row, if there is one.
  void take(const KeptTrial& trial) {
    for (SweepRow& row : outcome_.sweep.rows) {
      if (outcome_.sweep.gpus[row.gpu].name != trial.gpu || row.values != trial.values) continue;
      row.result.reset();
      row.folder = trial.folder;
      if (trial.result.fits || !request_.retry) set_result(row, trial.result);
    }
  }

  void set_result(SweepRow& row, TrialResult result) {
    SweptGpu& gpu = outcome_.sweep.gpus[row.gpu];
    if (result.memory_bytes) gpu.memory_bytes = result.memory_bytes;
    most_host_bytes_ = std::max(most_host_bytes_, result.host_bytes);
    row.result = std::move(result);
  }

  // One trial at first, to measure its memory.
  [[nodiscard]] std::size_t allowed() const {
    if (request_.jobs != 0) return request_.jobs;
    if (request_.real || most_host_bytes_ == 0) return 1;
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::uint64_t each = saturating_add(most_host_bytes_, most_host_bytes_ / 4);
    const std::uint64_t more = free_host_bytes() / each;
    return std::clamp<std::size_t>(running_.size() + more, 1, cores);
  }

  std::optional<std::size_t> next() {
    if (request_.budget != 0 && started_ >= request_.budget) return std::nullopt;
    if (request_.budget != 0) {
      predict(outcome_.sweep);
      return next_row(outcome_.sweep, taken_);
    }
    for (std::size_t row = 0; row < taken_.size(); ++row) {
      if (!taken_[row] && !outcome_.sweep.rows[row].result) return row;
    }
    return std::nullopt;
  }

  // An existing folder, of a killed sweep or of another program, is kept.
  Result<std::string> create_folder() {
    std::error_code error;
    std::filesystem::create_directory(request_.folder + "/trials", error);
    while (!error) {
      std::string folder = kept_.new_folder();
      if (std::filesystem::create_directory(request_.folder + "/" + folder, error)) return folder;
    }
    return Error{fmt::format("{}/trials: a folder cannot be created there: {}", request_.folder, error.message())};
  }

  Result<void> start_more() {
    while (running_.size() < allowed()) {
      const auto row = next();
      if (!row) return {};
      const SweepRow& configuration = outcome_.sweep.rows[*row];
      const auto folder = create_folder();
      if (!folder) return folder.error();
      const std::string path = request_.folder + "/" + *folder;
      TrialRequest trial{outcome_.sweep.gpus[configuration.gpu].option, request_.options,
                         request_.program.with(configuration.values)};
      auto process = start_trial(trial, path);
      if (!process) return process.error();
      running_.push_back({*row, *folder, std::move(trial), std::move(*process)});
      taken_[*row] = true;
      ++started_;
    }
    return {};
  }

  Result<void> finish(const Running& trial, const ProcessEnd& end) {
    SweepRow& row = outcome_.sweep.rows[trial.row];
    const std::string path = request_.folder + "/" + trial.folder;
    TrialResult result = read_trial(trial.request, path, end);
    if (result.fits && !result.out_of_memory) result.categories = categories_at_peak(path);
    if (result.fits && !result.out_of_memory && request_.check) {
      if (const auto status = request_.check(path); !status) {
        TrialResult failed;
        failed.failure = status.error().message;
        failed.duration_ns = result.duration_ns;
        failed.host_bytes = result.host_bytes;
        result = std::move(failed);
      }
    }
    spent_ns_ += end.duration_ns;
    ++ended_;
    row.folder = trial.folder;
    set_result(row, result);
    return kept_.append({outcome_.sweep.gpus[row.gpu].name, row.values, trial.folder, std::move(result)});
  }

  [[nodiscard]] SweepProgress progress() const {
    SweepProgress now;
    std::size_t left = 0;
    for (std::size_t row = 0; row < taken_.size(); ++row) {
      if (outcome_.sweep.rows[row].result) ++now.done;
      if (!outcome_.sweep.rows[row].result && !taken_[row]) ++left;
    }
    if (request_.budget != 0) left = std::min(left, request_.budget - started_);
    now.running = running_.size();
    now.total = now.done + now.running + left;
    if (ended_ != 0) now.left_ns = spent_ns_ / ended_ * (left + running_.size()) / std::max<std::size_t>(1, allowed());
    return now;
  }

  const SweepRequest& request_;
  KeptTrials kept_;
  SweepOutcome outcome_;
  std::vector<bool> taken_;  // rows with trials started by this call
  std::vector<Running> running_;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  std::uint64_t spent_ns_ = 0;
  std::uint64_t most_host_bytes_ = 0;
};

}  // namespace

Result<SweepOutcome> run_sweep(const SweepRequest& request,
                               const std::function<void(const Sweep&, const SweepProgress&)>& show) {
  std::size_t rows = request.gpus.size();
  for (const VariedArgument& argument : request.program.arguments()) {
    rows = std::min(rows, kMaxRows + 1) * argument.values.size();
  }
  if (rows > kMaxRows) {
    return Error{
        fmt::format("more than {} configurations; give fewer values, or a range with a larger step", kMaxRows)};
  }
  auto kept = KeptTrials::open(request.folder, common_line(request));
  if (!kept) return kept.error();
  return SweepRun(request, std::move(*kept)).run(show);
}

}  // namespace tidemark
