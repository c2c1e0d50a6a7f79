#include "cli/dp_sgd.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dp_sgd/results.h"
#include "launch/background_process.h"
#include "launch/environment.h"
#include "report/common/terminal.h"
#include "sweep/arguments.h"

namespace tidemark::cli {

namespace {

using Values = std::vector<std::string>;

constexpr std::chrono::seconds kHubPatience{120};
constexpr const char* kHeading = "With --preset dp-sgd, fine-tuning with DP-SGD (Opacus)";

enum : std::size_t { kSeqLength, kBatchSize, kPhysicalBatchSize, kLoraRank, kClipping };

std::string number_problem(const std::string& value) {
  const bool digits = !value.empty() && value.size() <= 9 && value.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : fmt::format("invalid value '{}' (expected an integer)", value);
}

}  // namespace

std::vector<DpSgdPreset::VariedOption> DpSgdPreset::varied_options() {
  return {{"seq_length", "--seq_lengths", {"128", "256", "512"}, "", "Tokens of a sample"},
          {"batch_size", "--batch_sizes", {"8", "16", "32"}, "", "Samples of an optimizer step of a process"},
          {"max_physical_batch_size",
           "--max_physical_batch_sizes",
           {"1", "2", "4"},
           "",
           "Samples of a forward and backward pass; combinations with more than the batch size are left out"},
          {"lora_rank", "--lora_ranks", {"8", "16"}, "", "Ranks of LoRA; 0 trains all parameters"},
          {"clipping",
           "--clipping",
           {},
           "hooks|ghost",
           "Per-sample gradients by hooks, or ghost clipping, which has none"}};
}

DpSgdPreset::DpSgdPreset(CommandLine& app, std::string& folder) : app_(app) {
  app.add_option("--preset", preset_,
                 "A program that comes with Tidemark, with options of its own, in place of PROGRAM")
      ->one_of(kName);
  app.group(kHeading);
  app.add_option("--model_name", model_name_,
                 "Model on the Hugging Face hub, of which the configuration is read, or a folder")
      ->type_name("NAME");
  app.add_option("--config", config_, "The model's config.json, where there is no network")->type_name("FILE");
  app.add_option("--token", token_, "Access token for the hub")->type_name("TOKEN");
  for (VariedOption& varied : varied_) {
    const std::string defaults =
        varied.values.empty() ? "hooks, or ghost with --wrap fsdp" : fmt::format("{}", fmt::join(varied.values, " "));
    Option* option = app.add_option(varied.option, varied.values, varied.help)->all_that_follow();
    if (*varied.words != '\0') {
      option->one_of(varied.words);
    } else {
      option->type_name("N...")->check(number_problem);
    }
    option->show_default(defaults);
  }
  app.add_option("--num_steps", steps_, "Optimizer steps of a trial")->type_name("N");
  app.add_option("--dtype", dtype_, "Type of the model's parameters")->one_of("bf16|fp32");
  app.add_option("--wrap", wrap_, "For several GPUs, with --nproc; fsdp takes ghost clipping only")
      ->one_of("none|ddp|fsdp");
  app.add_option("--results_dir", folder, "The same as --output")->type_name("FOLDER")->show_default("results");
}

Result<bool> DpSgdPreset::chosen() const {
  const auto given = app_.first_given(kHeading);
  if (given && preset_ != kName) return Error{fmt::format("{}: only with --preset {}", *given, kName)};
  return preset_ == kName;
}

Result<std::vector<VariedArgument>> DpSgdPreset::arguments() const {
  std::vector<VariedArgument> arguments;
  for (const VariedOption& varied : varied_) {
    const Values values = varied.values.empty() ? Values{wrap_ == "fsdp" ? "ghost" : "hooks"} : varied.values;
    auto each_once = parse_list(fmt::format("{}", fmt::join(values, ",")));
    if (!each_once) return Error{fmt::format("{}: {}", varied.option, each_once.error().message)};
    arguments.push_back({varied.name, std::string("--") + varied.name, std::move(*each_once)});
  }
  return arguments;
}

Result<void> DpSgdPreset::check(const PresetCall& call, const Values& clipping) const {
  for (const std::size_t positive : {kSeqLength, kBatchSize, kPhysicalBatchSize}) {
    for (const std::string& value : varied_[positive].values) {
      if (number_of(value) == 0.0) return Error{fmt::format("{} 0: from 1", varied_[positive].option)};
    }
  }
  const auto number_less = [](const std::string& a, const std::string& b) {
    return number_of(a).value_or(0) < number_of(b).value_or(0);
  };
  const Values& physical = varied_[kPhysicalBatchSize].values;
  const Values& batch = varied_[kBatchSize].values;
  if (number_less(*std::max_element(batch.begin(), batch.end(), number_less),
                  *std::min_element(physical.begin(), physical.end(), number_less))) {
    return Error{"--max_physical_batch_sizes: all are larger than --batch_sizes"};
  }
  if (steps_ == 0) return Error{"--num_steps 0: from 1"};
  if (wrap_ == "none" && call.ranks.value_or(1) != 1) {
    return Error{fmt::format("--nproc {}: only with --wrap ddp or fsdp", *call.ranks)};
  }
  if (wrap_ != "none" && !call.ranks) {
    return Error{fmt::format("--wrap {}: give the number of GPUs with --nproc", wrap_)};
  }
  if (wrap_ == "fsdp" && clipping != Values{"ghost"}) {
    return Error{"--wrap fsdp: only with --clipping ghost, as Opacus shards no per-sample gradients"};
  }
  return {};
}

// Checks the interpreter too. Trials need no network then, and the token is in no file.
Result<std::string> DpSgdPreset::write_model_config(const PresetCall& call) const {
  const auto program = find_own_file("presets/model_config.py");
  if (!program) return program.error();
  std::string name = config_.empty() ? model_name_ : std::filesystem::path(config_).stem().string();
  std::replace(name.begin(), name.end(), '/', '-');
  const std::string path = fmt::format("{}/{}.config.json", call.folder, name);
  Values words = {call.python, *program, path};
  if (config_.empty()) {
    words.insert(words.end(), {"--model_name", model_name_});
  } else {
    words.insert(words.end(), {"--config", config_});
  }
  if (!token_.empty()) words.insert(words.end(), {"--token", token_});
  words.insert(words.end(), {"--needs", "torch", "opacus", "peft", "transformers"});
  const auto output = program_output(std::move(words), kHubPatience);
  if (!output) return output.error();
  if (output->exit_code == 0) return path;
  const std::string line = output->text.substr(0, output->text.find('\n'));
  return Error{line.empty() ? "the model's configuration could not be read" : line};
}

Result<PresetProgram> DpSgdPreset::program(const PresetCall& call) const {
  auto varied = arguments();
  if (!varied) return varied.error();
  if (auto status = check(call, (*varied)[kClipping].values); !status) return status.error();
  const auto program = find_own_file("presets/dp_sgd.py");
  if (!program) return program.error();
  const auto config = write_model_config(call);
  if (!config) return config.error();
  PresetProgram preset;
  preset.command = {call.python, *program, "--config", *config,       "--dtype",
                    dtype_,      "--wrap", wrap_,      "--num_steps", fmt::format("{}", steps_)};
  preset.arguments = std::move(*varied);
  preset.keeps = [](const Values& values) {
    return number_of(values[kPhysicalBatchSize]).value_or(0) <= number_of(values[kBatchSize]).value_or(0);
  };
  preset.check = [](const std::string& folder) -> Result<void> {
    const auto report = read_dp_sgd(folder);
    return report ? Result<void>() : Result<void>(report.error());
  };
  return preset;
}

Result<std::string> DpSgdPreset::write(const Sweep& sweep, const std::string& folder, const std::string& plot) const {
  const DpSgdSweep result = read_dp_sgd_sweep(sweep, model_words(), folder);
  if (auto written = write_dp_sgd_files(result, folder, plot); !written) return written.error();
  return to_text(result, detect_terminal(STDOUT_FILENO));
}

}  // namespace tidemark::cli
