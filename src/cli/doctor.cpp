// tidemark doctor: what can be recorded here, and what to do where something cannot.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/doctor_checks.h"
#include "cli/reading.h"
#include "report/text/terminal.h"
#include "report/words/printable.h"

namespace tidemark::cli {
namespace {

struct Options {
  std::string format = "text";
  std::vector<std::string> command;
};

const char* word(Check::Status status) {
  switch (status) {
    case Check::Status::ok:
      return "ok";
    case Check::Status::warning:
      return "warning";
    case Check::Status::problem:
      return "problem";
  }
  return "";
}

std::string text_of(const std::vector<Check>& checks, const Terminal& terminal) {
  std::string text;
  for (const Check& check : checks) {
    const Tone tone = check.status == Check::Status::ok        ? Tone::quiet
                      : check.status == Check::Status::warning ? Tone::warning
                                                               : Tone::error;
    text +=
        fmt::format("{} {}\n", paint(terminal, tone, fmt::format("{:<8}", word(check.status))), printable(check.text));
    if (!check.advice.empty()) text += fmt::format("{:<8} → {}\n", "", printable(check.advice));
  }
  return text;
}

std::string json_of(const std::vector<Check>& checks, bool fine) {
  using Json = nlohmann::ordered_json;
  Json object = {{"problems", !fine}, {"checks", Json::array()}};
  for (const Check& check : checks) {
    object["checks"].push_back({{"name", check.name},
                                {"status", word(check.status)},
                                {"text", check.text},
                                {"advice", check.advice.empty() ? Json(nullptr) : Json(check.advice)}});
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run(const Options& options) {
  const std::vector<Check> checks = examine_machine(options.command.empty() ? "" : options.command.front());
  const bool fine = std::none_of(checks.begin(), checks.end(),
                                 [](const Check& check) { return check.status == Check::Status::problem; });
  const int printed =
      print(options.format == "json" ? json_of(checks, fine) : text_of(checks, detect_terminal(STDOUT_FILENO)));
  return printed != kOk || fine ? printed : kCheckFailed;
}

}  // namespace

std::function<int()> setup_doctor(CommandLine& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--format", options->format, "Text for people, or for programs")->one_of("text|json");
  app.add_option("command", options->command, "What would be recorded; its interpreter is examined [python3]")
      ->type_name("PROGRAM ARGS...");
  app.ends_with_a_program();
  app.footer(
      "Exit code 1 when there is a problem, 0 otherwise. The program is not started, only its interpreter.\n\n"
      "Examples:\n"
      "  tidemark doctor\n"
      "  tidemark doctor -- .venv/bin/python train.py\n"
      "  tidemark doctor --format json | jq '.checks[] | select(.status != \"ok\")'");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
