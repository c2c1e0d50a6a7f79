#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "analyze/common/analysis_options.h"
#include "base/units.h"

namespace tidemark::cli {

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

Option* Option::check(std::function<std::string(const std::string&)> problem) {
  option_->check(CLI::Validator([problem = std::move(problem)](std::string& value) { return problem(value); }, ""));
  return this;
}

Option* Option::one_of(const std::string& words) {
  const std::vector<std::string> choices = split_choices(words);
  std::string expected;
  for (const std::string& choice : choices) {
    const char* separator = expected.empty() ? "" : choice == choices.back() ? " or " : ", ";
    expected += separator + choice;
  }
  return type_name(words)->check([choices, expected](const std::string& value) {
    const bool known = std::find(choices.begin(), choices.end(), value) != choices.end();
    return known ? std::string() : fmt::format("invalid value '{}' (expected {})", value, expected);
  });
}

Option* Option::milliseconds(double least, double most) {
  option_->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"ms", 1}, {"s", 1000}}));
  option_->check(CLI::Range(least, most));
  return this;
}

Option* Option::bytes(std::uint64_t least) {
  const auto has_sign = [](const std::string& value) {
    const bool sign = value.find_first_of("+-") != std::string::npos;  // CLI11 takes "-1" for 2^64 - 1
    return sign ? fmt::format("invalid size '{}' (expected a number of bytes, or one such as 500MB)", value) : "";
  };
  option_->transform(CLI::AsSizeValue(false));
  option_->transform(CLI::Validator([has_sign](std::string& value) { return has_sign(value); }, ""));  // comes first
  return check([least](const std::string& bytes) {
    const bool enough = std::stoull(bytes) >= least;
    return enough ? std::string() : fmt::format("{} is less than the minimum of {}", bytes, format_bytes(least));
  });
}

Option* Option::show_default() {
  option_->capture_default_str();
  return this;
}

template <typename T>
Option* CommandLine::add(const std::string& names, T& variable, const std::string& description) {
  return &options_.emplace_back(*app_->add_option(names, variable, description));
}

Option* CommandLine::add_option(const std::string& names, std::string& variable, const std::string& description) {
  return add(names, variable, description);
}

Option* CommandLine::add_option(const std::string& names, std::vector<std::string>& variable,
                                const std::string& description) {
  return add(names, variable, description);
}

Option* CommandLine::add_option(const std::string& names, std::uint64_t& variable, const std::string& description) {
  return add(names, variable, description);
}

Option* CommandLine::add_option(const std::string& names, double& variable, const std::string& description) {
  return add(names, variable, description);
}

Option* CommandLine::add_option(const std::string& names, const std::function<void(const std::string&)>& take,
                                const std::string& description) {
  return &options_.emplace_back(*app_->add_option_function<std::string>(names, take, description));
}

Option* CommandLine::add_flag(const std::string& names, const std::function<void()>& take,
                              const std::string& description) {
  return &options_.emplace_back(*app_->add_flag_callback(names, take, description));
}

Option* CommandLine::add_flag(const std::string& names, bool& variable, const std::string& description) {
  return &options_.emplace_back(*app_->add_flag(names, variable, description));
}

void CommandLine::ends_with_a_program() {
  app_->positionals_at_end();
  app_->prefix_command();
}

void CommandLine::footer(const std::string& text) {
  app_->footer(text);
}

bool CommandLine::given(const std::string& name) const {
  return app_->count(name) != 0;
}

const CLI::App& CommandLine::program() const {
  return app_->get_parent() == nullptr ? *app_ : *app_->get_parent();
}

}  // namespace tidemark::cli
