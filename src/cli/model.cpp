// tidemark model: the memory of a model's safetensors files. Needs neither PyTorch nor the values.
#include <memory>
#include <utility>

#include "cli/reading.h"
#include "model/model_facts.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

struct ModelOptions {
  std::vector<std::string> files;
  std::string format = "text";
  std::string output;
  std::uint64_t depth = 4;
  std::uint64_t oversized = kOversizedBytes;
};

int run(const ModelOptions& options) {
  auto checkpoint = read_checkpoint(options.files);
  if (!checkpoint) return fail(checkpoint.error().message);
  const ModelFacts facts = describe_model(std::move(*checkpoint), options.oversized);
  if (options.format == "json") return write_output(options.output, to_json(facts));
  if (options.format == "csv") return write_output(options.output, to_csv(facts));
  const bool to_terminal = options.output.empty() || options.output == "-";
  const Terminal terminal = to_terminal ? detect_terminal(STDOUT_FILENO) : Terminal();
  return write_output(options.output, to_text(facts, static_cast<std::size_t>(options.depth), terminal));
}

}  // namespace

std::function<int()> setup_model(CommandLine& app) {
  auto options = std::make_shared<ModelOptions>();
  app.add_option(
         "FILE", options->files,
         "A safetensors file, the index of one in several files, or a folder with either; several are one model")
      ->required();
  add_format(app, options->format, "text|json|csv");
  app.add_option("--depth", options->depth, "How many levels of modules text shows")->type_name("N");
  app.add_option("--oversized", options->oversized, "List tensors of this size or more as oversized")
      ->bytes(1)
      ->show_default("100MiB");
  app.add_option("-o,--output", options->output, "Write to this file instead of stdout")->type_name("FILE");
  app.footer(
      "Only headers are read: fast, little memory. Files say neither which parameters are "
      "trained "
      "nor which tensors are buffers; tidemark.analyze_model says it of a model in Python.\n\n"
      "Examples:\n"
      "  tidemark model model.safetensors\n"
      "  tidemark model Llama-2-7b-hf/ --depth 2\n"
      "  tidemark model adapter/adapter_model.safetensors --format json | jq .lora.ranks\n"
      "  tidemark model model.safetensors --format csv -o tensors.csv");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
