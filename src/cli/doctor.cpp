// tidemark doctor: what can be recorded on this machine, and remedies for problems.
#include <memory>

#include "cli/reading.h"
#include "doctor/diagnosis.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace tidemark::cli {

std::function<int()> setup_doctor(CommandLine& app) {
  struct Options {
    std::string format = "text";
    std::vector<std::string> command;
  };
  auto options = std::make_shared<Options>();
  add_format(app, options->format, "text|json");
  app.add_option("PROGRAM", options->command, "Program to be recorded; its interpreter is examined")
      ->show_default("python3");
  app.ends_with_a_program();
  app.footer(
      "Exit code 1 when there is a problem, 0 otherwise. The program is not started, only its interpreter.\n\n"
      "Examples:\n"
      "  tidemark doctor\n"
      "  tidemark doctor -- .venv/bin/python train.py\n"
      "  tidemark doctor --format json | jq '.checks[] | select(.status != \"ok\")'");
  return [options] {
    const Diagnosis diagnosis = diagnose(options->command.empty() ? "" : options->command.front());
    const int printed =
        print(options->format == "json" ? to_json(diagnosis) : to_text(diagnosis, detect_terminal(STDOUT_FILENO)));
    return printed == kOk && diagnosis.has_problem() ? kCheckFailed : printed;
  };
}

}  // namespace tidemark::cli
