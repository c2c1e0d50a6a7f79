// tidemark simulate: the effect of other settings of PyTorch's allocator on a recorded program.
#include "simulate/simulate.h"

#include <memory>
#include <utility>

#include "cli/reading.h"
#include "query/results/results.h"
#include "query/words/recording_text.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct SimulateArguments : ReadingOptions {
  SimulateOptions what;
  std::string recorded;
  std::uint64_t memory = 0;
  std::string allocator = "auto";
};

int run(const CommandLine& app, SimulateArguments& options) {
  const auto format = output_format(options);
  if (!format) return fail(format.error().message);
  if (const auto chosen = choose_files(options.files); !chosen) return fail(chosen.error().message);
  SimulateOptions& what = options.what;
  what.device = options.only_device();
  if (app.given("--recorded")) what.recorded = options.recorded;
  if (options.memory != 0) what.memory = options.memory;
  if (options.allocator != "auto") {
    what.replayer = options.allocator == "model" ? Replayer::model : Replayer::pytorch;
  }
  std::vector<Simulation> simulations;
  const auto read = read_files(options.files, open_store, [&](const Store& store, Symbols& symbols) -> Result<void> {
    auto simulation = simulate(store, symbols, what, make_progress(store.path, "Replaying"));
    if (!simulation) return simulation.error();
    simulations.push_back(std::move(*simulation));
    return {};
  });
  if (!read) return fail(read.error().message);
  if (*format == "json") return write_output(options.output, to_json(simulations));
  const bool to_stdout = options.output.empty() || options.output == "-";
  const Terminal terminal = to_stdout ? detect_terminal(STDOUT_FILENO) : Terminal();
  std::string text;
  for (const Simulation& simulation : simulations) {
    if (simulations.size() > 1) {
      text += (text.empty() ? "" : "\n") + paint(terminal, Tone::heading, recording_title(simulation.recording)) + "\n";
    }
    text += to_text(simulation, terminal);
  }
  return write_output(options.output, text);
}

}  // namespace

std::function<int()> setup_simulate(CommandLine& app) {
  auto options = std::make_shared<SimulateArguments>();
  add_reading(app, *options, {.formats = "text|json"});
  app.add_option("--set", options->what.sets,
                 "Settings to simulate in place of the recorded ones, as in PYTORCH_ALLOC_CONF; can be repeated, one "
                 "row for each")
      ->type_name("NAME:VALUE[,NAME:VALUE]...");
  app.add_flag("--search", options->what.search, "Simulate the settings that are worth trying");
  app.add_option("--memory", options->memory,
                 "Memory that PyTorch may reserve on each GPU, such as 24GiB: that of the GPU without what the context "
                 "and others take")
      ->bytes(kMinSimulatedMemory)
      ->show_default("where requests were refused, what was reserved; otherwise without a limit");
  app.add_option("--recorded", options->recorded, "Settings of the recorded program, if missing from the file")
      ->type_name("NAME:VALUE[,NAME:VALUE]...")
      ->show_default("the allocator's defaults");
  app.add_option("--python", options->what.python, "Python whose PyTorch to use")
      ->type_name("FILE")
      ->show_default("python3");
  app.add_option("--allocator", options->allocator,
                 "Allocator to replay with: PyTorch's, Tidemark's model of it, or the model only where there is no "
                 "PyTorch built for CUDA")
      ->one_of("auto|pytorch|model");
  app.footer(
      "The recorded allocations and frees are made again, in order, by PyTorch's own allocator on a phantom GPU; no "
      "GPU "
      "is needed or used. They are made with the recorded settings first: how far that is from the recording says how "
      "exact the others are. A replay ends where memory runs out and did not when it was recorded.\n\n"
      "Settings are set in the environment of the program: PYTORCH_ALLOC_CONF, before PyTorch 2.9 "
      "PYTORCH_CUDA_ALLOC_CONF.\n\n"
      "Examples:\n"
      "  tidemark simulate snapshot.pickle --set expandable_segments:True\n"
      "  tidemark simulate snapshot.pickle --search\n"
      "  tidemark simulate snapshot.pickle --memory 24GiB --set "
      "max_split_size_mb:128,garbage_collection_threshold:0.8\n"
      "  tidemark simulate train.tide --search --python .venv/bin/python --format json");
  return [options, &app] { return run(app, *options); };
}

}  // namespace tidemark::cli
