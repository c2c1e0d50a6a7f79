// tidemark devices: the GPUs here, their memory now, and who uses it.
#include <memory>

#include "cli/command.h"
#include "cli/devices_report.h"
#include "cli/reading.h"

namespace tidemark::cli {
namespace {

int run(const std::string& format) {
  const Inventory inventory = take_inventory();
  const int printed =
      print(format == "json" ? devices_json(inventory) : devices_text(inventory, detect_terminal(STDOUT_FILENO)));
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
  app.add_option("--format", *format, "Text for people, or for programs")->one_of("text|json");
  app.footer(
      "Without a GPU it says so and exits with 0; with 2 when there is a driver that does not work.\n\n"
      "Examples:\n"
      "  tidemark devices\n"
      "  CUDA_VISIBLE_DEVICES=1 tidemark devices\n"
      "  tidemark devices --format json | jq '.devices[] | {name, used_bytes}'");
  return [format] { return run(*format); };
}

}  // namespace tidemark::cli
