// tidemark devices: the GPUs of this machine, their memory now, and its processes.
#include <memory>

#include "cli/reading.h"
#include "collect/machine/inventory.h"
#include "report/json/machine.h"
#include "report/text/machine.h"

namespace tidemark::cli {
namespace {

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
  add_format(app, *format, "text|json");
  app.footer(
      "Exit code 0 with or without a GPU, 2 when a driver does not work.\n\n"
      "Examples:\n"
      "  tidemark devices\n"
      "  CUDA_VISIBLE_DEVICES=1 tidemark devices\n"
      "  tidemark devices --format json | jq '.devices[] | {name, used_bytes}'");
  return [format] { return run(*format); };
}

}  // namespace tidemark::cli
