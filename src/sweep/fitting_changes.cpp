#include "sweep/fitting_changes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "base/regular_file.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxBatchTrials = 4;
constexpr std::uint64_t kMaxRankFactor = 4;

// Batch sizes of one forward pass on one device come first: the others may be split by the program.
constexpr std::array kBatchNames = {
    "per_device_train_batch_size",
    "per_device_batch_size",
    "per_gpu_train_batch_size",
    "per_gpu_batch_size",
    "batch_size_per_gpu",
    "batch_size_per_device",
    "device_batch_size",
    "train_micro_batch_size_per_gpu",
    "micro_batch_size",
    "microbatch_size",
    "max_physical_batch_size",
    "physical_batch_size",
    "mbs",
    "train_batch_size",
    "batch_size",
    "batchsize",
    "batch",
    "bs",
};

// "--train.Batch-Size" -> "batch_size".
std::string normalized(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  std::string text(name);
  for (char& letter : text) {
    letter = letter == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

// Index in kBatchNames; its size for another name.
std::size_t rank_of_name(std::string_view name) {
  if (name == "-b") return kBatchNames.size() - 1;
  return static_cast<std::size_t>(std::ranges::find(kBatchNames, normalized(name)) - kBatchNames.begin());
}

std::vector<std::string> with_batch(std::vector<std::string> command, const BatchArgument& batch, std::uint64_t value) {
  command[batch.word].replace(batch.position, std::string::npos, std::to_string(value));
  return command;
}

std::string batch_text(const BatchArgument& batch, std::uint64_t value) {
  return batch.name + (batch.name.starts_with("-") ? " " : "=") + std::to_string(value);
}

// The largest of value/2, value/4, ... that fits. Memory is taken to grow linearly with the batch: two trials say which
// fraction to plan next.
std::optional<PlannedChange> smaller_batch(const ChangeSearch& search, const MeasureTrial& measure) {
  std::vector<std::string> command = search.trial.command;
  auto batch = find_batch_argument(command);
  if (!batch) {
    const auto by_default = find_batch_default(search.source);
    if (!by_default) return std::nullopt;
    command.insert(command.end(), {by_default->name, std::to_string(by_default->value)});
    batch = find_batch_argument(command);
  }
  if (!batch) return std::nullopt;
  double larger_value = static_cast<double>(batch->value);
  double larger_need = static_cast<double>(search.need_bytes);
  const auto memory = static_cast<double>(search.memory_bytes);
  std::uint64_t value = batch->value / 2;
  for (std::size_t trials = 0; trials < kMaxBatchTrials && value != 0; ++trials) {
    TrialRequest trial = search.trial;
    trial.command = with_batch(command, *batch, value);
    const auto need = measure(trial, batch_text(*batch, value));
    if (!need) return std::nullopt;
    if (*need <= search.memory_bytes) {
      std::string change = batch_text(*batch, value);
      if (batch->value % value == 0) {
        change += fmt::format(", with gradient accumulation over {} steps for a batch of {}", batch->value / value,
                              batch->value);
      }
      return PlannedChange{std::move(change), *need};
    }
    const auto small_need = static_cast<double>(*need);
    const double slope = (larger_need - small_need) / (larger_value - static_cast<double>(value));
    const double fixed = small_need - slope * static_cast<double>(value);
    if (slope <= 0 || fixed > memory) return std::nullopt;  // no batch is small enough
    larger_value = static_cast<double>(value);
    larger_need = small_need;
    do {
      value /= 2;
    } while (value > 1 && fixed + slope * static_cast<double>(value) > memory);
  }
  return std::nullopt;
}

std::optional<PlannedChange> checkpointing(const ChangeSearch& search, const MeasureTrial& measure) {
  const auto option = find_checkpointing_option(search.trial.command, search.source);
  if (!option) return std::nullopt;
  for (const char* const value : {"", "true"}) {  // a flag, or an option that takes a value
    TrialRequest trial = search.trial;
    trial.command.push_back(*option);
    std::string change = *option;
    if (*value != '\0') {
      trial.command.emplace_back(value);
      change += fmt::format(" {}", value);
    }
    const auto need = measure(trial, change);
    if (!need) continue;
    if (*need > search.memory_bytes) return std::nullopt;
    return PlannedChange{change, *need, true};
  }
  return std::nullopt;
}

std::optional<PlannedChange> more_gpus(const ChangeSearch& search, const MeasureTrial& measure) {
  constexpr std::string_view kRanks = "--nproc=";
  if (!distributes_parameters(search.source)) return std::nullopt;
  for (std::uint64_t factor = 2; factor <= kMaxRankFactor; factor *= 2) {
    const std::uint64_t ranks = search.ranks * factor;
    if (ranks > kMaxPlannedDevices) break;
    TrialRequest trial = search.trial;
    std::erase_if(trial.options, [&](const std::string& word) { return word.starts_with(kRanks); });
    trial.options.push_back(fmt::format("{}{}", kRanks, ranks));
    const std::string change = fmt::format("{} GPUs (--nproc {})", ranks, ranks);
    const auto need = measure(trial, change);
    if (!need) return std::nullopt;
    if (*need <= search.memory_bytes) return PlannedChange{change, *need};
  }
  return std::nullopt;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [text](std::string_view word) { return text.find(word) != text.npos; });
}

// The first string of the source that is an option about checkpointing of gradients or activations:
// "--grad-checkpointing", but not "--checkpoint-dir".
std::optional<std::string> quoted_checkpointing_option(std::string_view source) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz-_";
  for (std::size_t at = source.find("--"); at != source.npos; at = source.find("--", at + 2)) {
    const std::size_t end = std::min(source.find_first_not_of(kLetters, at), source.size());
    const bool quoted = at != 0 && end != source.size() && (source[at - 1] == '"' || source[at - 1] == '\'') &&
                        source[end] == source[at - 1];
    const std::string_view name = source.substr(at, end - at);
    if (quoted && contains_any(name, {"checkpoint", "ckpt"}) && contains_any(name, {"grad", "act"}) &&
        !contains_any(name, {"dir", "path", "no-", "no_"})) {
      return std::string(name);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<BatchArgument> find_batch_argument(const std::vector<std::string>& command) {
  std::optional<BatchArgument> best;
  std::size_t best_rank = kBatchNames.size();
  const auto consider = [&](std::string_view name, std::size_t word, std::size_t position) {
    const std::size_t rank = rank_of_name(name);
    const auto value = parse_number<std::uint64_t>(std::string_view(command[word]).substr(position));
    if (rank >= best_rank || !value || *value < 2) return;
    best_rank = rank;
    best = {std::string(name), *value, word, position};
  };
  for (std::size_t index = 1; index < command.size(); ++index) {
    const std::string_view word = command[index];
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      consider(word.substr(0, equals), index, equals + 1);
    } else if (word.starts_with('-') && index + 1 < command.size()) {
      consider(word, index + 1, 0);
    }
  }
  return best;
}

std::optional<BatchDefault> find_batch_default(std::string_view source) {
  constexpr std::string_view kDefault = "default=";
  std::optional<BatchDefault> best;
  std::size_t best_rank = kBatchNames.size();
  for (std::size_t at = source.find("add_argument("); at != source.npos; at = source.find("add_argument(", at + 1)) {
    const std::string_view call = source.substr(at, std::min(source.find(')', at), source.size()) - at);
    const std::size_t place = call.find(kDefault);
    if (place == call.npos) continue;
    const std::string_view digits = call.substr(place + kDefault.size());
    const std::size_t length = std::min(digits.find_first_not_of("0123456789"), digits.size());
    const auto value = parse_number<std::uint64_t>(digits.substr(0, length));
    if (!value || *value < 2) continue;
    for (std::size_t dash = call.find("--"); dash != call.npos; dash = call.find("--", dash + 2)) {
      const std::size_t end = call.find_first_of("\"' ,)=", dash);
      if (end == call.npos) break;
      const std::string_view name = call.substr(dash, end - dash);
      const std::size_t rank = rank_of_name(name);
      if (rank >= best_rank) continue;
      best_rank = rank;
      best = {std::string(name), *value};
    }
  }
  return best;
}

std::optional<std::string> find_checkpointing_option(const std::vector<std::string>& command, std::string_view source) {
  std::optional<std::string> option = quoted_checkpointing_option(source);
  if (!option && contains_any(source, {"HfArgumentParser", "TrlParser"})) option = "--gradient_checkpointing";
  if (!option) return std::nullopt;
  const bool given = std::ranges::any_of(
      command, [&](const std::string& word) { return normalized(word).starts_with(normalized(*option)); });
  return given ? std::nullopt : option;
}

bool distributes_parameters(std::string_view source) {
  return contains_any(source, {"fully_shard", "FullyShardedDataParallel", "FSDP", "deepspeed"});
}

std::string script_source(const std::vector<std::string>& command) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  const auto script = std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  if (script == command.end()) return {};
  const auto file = open_regular_file(*script);
  if (!file) return {};
  std::string text(kMaxBytes, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file->get(), text.data() + size, text.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

std::vector<PlannedChange> find_fitting_changes(const ChangeSearch& search, const MeasureTrial& measure) {
  std::vector<PlannedChange> changes;
  for (const auto find : {smaller_batch, checkpointing, more_gpus}) {
    if (auto change = find(search, measure)) changes.push_back(std::move(*change));
  }
  return changes;
}

}  // namespace tidemark
