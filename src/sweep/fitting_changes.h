// Changes of a program's command that make it fit on a GPU: a smaller batch, activation checkpointing, more GPUs. Each
// one is found by planning the program with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/plan/plan.h"
#include "sweep/trials.h"

namespace tidemark {

/// The argument of a command that sets the batch size, in one of the forms `--batch-size 8`, `--batch_size=8` and
/// `train.batch_size=8`.
struct BatchArgument {
  std::string name;          ///< as the command spells it: "--batch-size", "train.batch_size"
  std::uint64_t value = 0;   ///< at least 2: a batch of one sample cannot be smaller
  std::size_t word = 0;      ///< index of the word that contains the value
  std::size_t position = 0;  ///< of the value's first digit in that word
};

/// std::nullopt if the command sets no batch size. If it sets several, the one of a forward pass on one device
/// (`--per_device_train_batch_size`, `--micro-batch-size`) is returned.
[[nodiscard]] std::optional<BatchArgument> find_batch_argument(const std::vector<std::string>& command);

/// The option of a script that sets the batch size, and its default value, as in `add_argument("--batch-size",
/// type=int, default=64)`. std::nullopt if its `source` has none.
struct BatchDefault {
  std::string name;
  std::uint64_t value = 0;
};
[[nodiscard]] std::optional<BatchDefault> find_batch_default(std::string_view source);

/// The option of a script that switches activation checkpointing on: the first name of an option in its `source` that
/// is about checkpointing gradients or activations, or that of Hugging Face's TrainingArguments. std::nullopt if there
/// is none, or if `command` has it already.
[[nodiscard]] std::optional<std::string> find_checkpointing_option(const std::vector<std::string>& command,
                                                                   std::string_view source);

/// Whether a script distributes parameters over ranks: it names FSDP, fully_shard or DeepSpeed.
[[nodiscard]] bool distributes_parameters(std::string_view source);

/// The text of the Python script that `command` starts, at most its first MiB; empty if it starts none or it cannot be
/// read.
[[nodiscard]] std::string script_source(const std::vector<std::string>& command);

struct ChangeSearch {
  TrialRequest trial;              ///< the plan that does not fit, without a limit of memory
  std::uint64_t need_bytes = 0;    ///< that the trial needs of each GPU
  std::uint64_t memory_bytes = 0;  ///< of each GPU
  std::uint64_t ranks = 1;         ///< of --nproc
  std::string source;              ///< of the program's script
};

/// Bytes of each GPU that a trial needs, planned without a limit. std::nullopt if the trial failed.
/// `change`: what differs from the program's command, to be shown as progress.
using MeasureTrial = std::function<std::optional<std::uint64_t>(const TrialRequest& trial, const std::string& change)>;

/// At most one change of each kind, each enough by itself: the largest power-of-two fraction of the batch, the option
/// for checkpointing, and the least doubling of the ranks. Makes at most eight trials.
[[nodiscard]] std::vector<PlannedChange> find_fitting_changes(const ChangeSearch& search, const MeasureTrial& measure);

}  // namespace tidemark
