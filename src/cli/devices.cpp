// tidemark devices: the GPUs of this machine, their memory now, and its processes.
#include <memory>

#include "cli/reading.h"
#include "collect/machine/inventory.h"
#include "plan/gpu_profiles.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

int print_profile(const std::string& name) {
  const auto gpu = find_gpu_profile(name);
  return gpu ? print(gpu_profile_text(*gpu)) : fail(gpu.error().message);
}

int run(const std::string& format) {
  const Inventory inventory = take_inventory();
  const int printed = print(format == "json" ? to_json(inventory) : to_text(inventory, detect_terminal(STDOUT_FILENO)));
  if (printed != kOk) return printed;
  int code = kOk;
  for (const ListedDriver& driver : inventory.drivers) {
    if (!driver.problem.empty()) code = fail(driver.problem);
  }
  return code;
}

}  // namespace

std::function<int()> setup_devices(CommandLine& app) {
  auto format = std::make_shared<std::string>("text");
  auto profile = std::make_shared<std::string>();
  add_format(app, *format, "text|json");
  app.add_option("--profile", *profile,
                 "Print what `plan` knows of a GPU instead, as a file for its --gpu: auto, the first one of this "
                 "machine, or a name of `plan --help`")
      ->type_name("NAME|FILE");
  app.footer(
      "Exit code 0 with or without a GPU, 2 when a driver does not work.\n\n"
      "Examples:\n"
      "  tidemark devices\n"
      "  CUDA_VISIBLE_DEVICES=1 tidemark devices\n"
      "  tidemark devices --format json | jq '.devices[] | {name, used_bytes}'\n"
      "  tidemark devices --profile auto > my.gpu    (to plan for this GPU elsewhere)");
  return [format, profile] { return profile->empty() ? run(*format) : print_profile(*profile); };
}

}  // namespace tidemark::cli
