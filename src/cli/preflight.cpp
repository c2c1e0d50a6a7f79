// tidemark preflight: the longest batches of a program first. Starts the command, which is Python:
// python/tidemark/preflight.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/package_command.h"

namespace tidemark::cli {
namespace {

struct PreflightOptions {
  bool plan = false;
  std::string gpu;
  std::uint64_t memory_bytes = 0;
  std::uint64_t ranks = 1;
  std::string python;
  std::string output;
  std::uint64_t epochs = 1;
  std::string seconds = "60";
  std::vector<std::string> program;
};

constexpr const char* kOfPlan[] = {"--gpu", "--memory", "--nproc", "--python", "--output"};

int run(const PreflightOptions& options, const CommandLine& app) {
  for (const char* const option : kOfPlan) {
    if (!options.plan && app.given(option)) return fail(std::string(option) + " is of a plan: add --plan");
  }
  std::vector<std::string> words = app.words_given({});
  words.emplace_back("--");
  words.insert(words.end(), options.program.begin(), options.program.end());
  return run_package_command("", "tidemark.preflight", words);
}

}  // namespace

std::function<int()> setup_preflight(CommandLine& app) {
  auto options = std::make_shared<PreflightOptions>();
  app.add_flag("--plan", options->plan, "Run it on a simulated GPU, as `tidemark plan` does");
  app.add_option("--gpu", options->gpu, "With --plan: the GPU")
      ->type_name("NAME|FILE")
      ->show_default("the first one of this machine");
  app.add_option("--memory", options->memory_bytes, "With --plan: memory of each GPU, such as 24GiB")->bytes(1);
  app.add_option("--nproc", options->ranks, "With --plan: ranks to start")
      ->type_name("N")
      ->show_default("the program is started as it is");
  app.add_option("--python", options->python, "With --plan: Python interpreter of the program")
      ->type_name("FILE")
      ->show_default("the one that PROGRAM starts");
  app.add_option("-o,--output", options->output, "With --plan: recording of the plan")
      ->type_name("FILE")
      ->show_default("PROGRAM-DATE-TIME.tide");
  app.add_option("--epochs", options->epochs, "Epochs whose batches are compared")->type_name("N");
  app.add_option("--seconds", options->seconds,
                 "How long samples are read for their lengths, for each loader that does not know them")
      ->type_name("S");
  app.add_option("PROGRAM", options->program, "Program and its arguments")->required();
  app.ends_with_a_program();
  app.footer(
      "Runs the unchanged program with the longest batches of its data loaders (torch.utils.data) first, and ends it "
      "after some training steps: nothing that comes later, such as saving a checkpoint, is run. torchrun and scripts "
      "may start it. Part of the Python package: TIDEMARK_PYTHON names the interpreter that has it, otherwise "
      "python3.\n\n"
      "Exit code 0: it fits; 1: it ran out of memory; 2: an error, or not known.\n\n"
      "Examples:\n"
      "  tidemark preflight -- python train.py\n"
      "  tidemark preflight -- torchrun --nproc-per-node 8 train.py\n"
      "  tidemark preflight --plan --gpu A100-40GB -- python train.py");
  return [options, &app] { return run(*options, app); };
}

}  // namespace tidemark::cli
