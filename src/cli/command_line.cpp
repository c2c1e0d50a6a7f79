#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

#include "analyze/common/analysis_options.h"
#include "base/units.h"
#include "cli/command_model.h"

namespace tidemark::cli {
namespace {

constexpr char kProtection = '\x01';

// Lists that CLI11 splits, protected or not.
bool is_list(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of(kProtection), word.size()));
  return word.starts_with('[') && word.ends_with(']');
}

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string restore_word(std::string& word) {
  if (word.starts_with(kProtection) && is_list(word)) word.erase(word.begin());
  return "";  // it is fine
}

OptionModel option_model(const CLI::Option& option) {
  OptionModel model;
  for (const std::string& name : option.get_snames()) model.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) model.names.push_back("--" + name);
  if (option.get_type_size() != 0) model.value = option.get_type_name();
  if (option.get_positional()) model.argument = option.get_name(true);
  model.group = option.get_group();
  model.description = option.get_description();
  model.initial = option.get_default_str();
  model.required = option.get_required();
  model.repeated = option.get_items_expected_max() > 1;
  return model;
}

std::string usage_of(const CLI::App& app, const CommandModel& model) {
  std::string usage = app.get_parent() == nullptr ? model.name : app.get_parent()->get_name() + " " + model.name;
  if (!model.options.empty()) usage += " [OPTIONS]";
  for (const OptionModel& argument : model.arguments) {
    const std::string name = argument.argument + (argument.repeated ? "..." : "");
    const std::string shown = app.get_prefix_command() ? fmt::format("[--] {} [ARGS]...", argument.argument) : name;
    usage += argument.required ? fmt::format(" {}", shown) : fmt::format(" [{}]", shown);
  }
  return model.commands.empty() ? usage : usage + " COMMAND";
}

}  // namespace

std::vector<std::string> OptionModel::choices() const {
  std::vector<std::string> words = split_choices(value);
  if (words.size() == 1) return {};
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || std::isupper(static_cast<unsigned char>(word.front())) != 0;
  });
  return words;
}

CommandModel command_model(const CLI::App& app) {
  CommandModel model;
  model.name = app.get_name();
  model.group = app.get_group();
  model.description = app.get_description();
  model.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    auto& list = option->get_positional() ? model.arguments : model.options;
    list.push_back(option_model(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) model.commands.push_back(command_model(*command));
  }
  model.usage = usage_of(app, model);
  model.ends_with_program = app.get_prefix_command();
  return model;
}

std::string CommandModel::unknown_option(const std::vector<std::string>& words) const {
  std::vector<std::string> names;
  for (const OptionModel& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  for (std::size_t n = 0; n < words.size() && words[n] != "--"; ++n) {
    const std::string& word = words[n];
    if (word.size() < 2 || word.front() != '-') {
      if (ends_with_program) break;  // the program
      continue;
    }
    const bool is_long = word.starts_with("--");
    const std::size_t end = is_long ? word.find('=') : 2;  // "-ofile", "-fq"
    const std::string flag = word.substr(0, end);
    const auto known = std::ranges::find_if(options, [&](const OptionModel& option) {
      return std::ranges::find(option.names, flag) != option.names.end();
    });
    if (known == options.end()) {
      const std::string guess = closest_word(flag, names);
      return fmt::format("unknown option {}{}", flag, guess.empty() ? "" : fmt::format("; did you mean {}?", guess));
    }
    const bool has_value = is_long ? end != std::string::npos : word.size() > 2;
    if (!known->value.empty() && !has_value) ++n;
  }
  return "";
}

std::string closest_word(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least || distance >= candidate.size()) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::vector<std::string> protected_words(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words) {
    if (is_list(word)) word.insert(word.begin(), kProtection);
  }
  return words;
}

std::string either_of(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (n != 0) list += n + 1 == words.size() ? " or " : ", ";
    list += words[n];
  }
  return list;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::one_at_a_time() {
  option_->allow_extra_args(false);
  return this;
}

Option* Option::all_that_follow() {
  option_->allow_extra_args(true);
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
  return type_name(words)->check([choices](const std::string& value) {
    const bool known = std::find(choices.begin(), choices.end(), value) != choices.end();
    if (known) return std::string();
    const std::string guess = closest_word(value, choices);
    return fmt::format("invalid value '{}' (expected {}){}", value, either_of(choices),
                       guess.empty() ? "" : fmt::format("; did you mean '{}'?", guess));
  });
}

Option* Option::milliseconds(double least, double most) {
  type_name("TIME");
  option_->transform(CLI::Validator(
      [least, most](std::string& value) {
        const auto number = parse_time(value, kMillisecond);
        if (!number || !(*number >= least && *number <= most)) {
          return fmt::format("invalid value '{}' (expected a time from {:g}ms to {:g}s, such as 50ms or 2s)", value,
                             least, most / 1000);
        }
        value = fmt::format("{}", *number);
        return std::string();
      },
      ""));
  return show_default(option_->get_default_str() + "ms");
}

Option* Option::seconds() {
  type_name("TIME");
  option_->transform(CLI::Validator(
      [](std::string& value) {
        const auto seconds = parse_time(value, kSecond);
        if (!seconds)
          return fmt::format("invalid value '{}' (expected seconds, or a time such as 500ms, 10min or 2h)", value);
        value = fmt::format("{}", *seconds);
        return std::string();
      },
      ""));
  return this;
}

Option* Option::time_span() {
  type_name("TIME");
  return check([](const std::string& value) {
    constexpr double kMax = 100 * 31'536'000.0;
    const auto seconds = parse_time(value, kSecond);
    const bool fine = seconds && *seconds >= 1 && *seconds <= kMax;
    return fine ? "" : fmt::format("invalid value '{}' (expected a time such as 90s, 10min, 2h or 30d)", value);
  });
}

Option* Option::bytes(std::uint64_t least) {
  type_name("SIZE");
  option_->transform(CLI::Validator(
      [least](std::string& value) {
        const auto size = parse_size(value);
        if (!size) return fmt::format("invalid size '{}' (expected bytes, or a size such as 500MB or 2GiB)", value);
        value = std::to_string(*size);
        const bool enough = *size >= least;
        if (enough) return std::string();
        const std::string unit = *size < 10'000 ? fmt::format("; did you mean {}GiB?", *size) : "";
        return fmt::format("{} is less than the minimum of {}{}", value, format_bytes(least), unit);
      },
      ""));
  return option_->get_default_str() == "0" ? show_default("") : this;
}

Option* Option::show_default(const std::string& text) {
  option_->default_str(text);
  return this;
}

template <typename T>
Option* CommandLine::add(const std::string& names, T& variable, const std::string& description) {
  CLI::Option* option = app_->add_option(names, variable, description);
  if constexpr (!std::is_arithmetic_v<T>) option->transform(CLI::Validator(restore_word, ""));
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    if (names.starts_with('-')) option->allow_extra_args(false);  // the word after its value may be a FILE
  } else {
    option->capture_default_str();
  }
  return &options_.emplace_back(*option);
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
  CLI::Option* const option = app_->add_option_function<std::string>(names, take, description);
  option->transform(CLI::Validator(restore_word, ""));
  return &options_.emplace_back(*option);
}

Option* CommandLine::add_flag(const std::string& names, const std::function<void()>& take,
                              const std::string& description) {
  return &options_.emplace_back(*app_->add_flag_callback(names, take, description));
}

Option* CommandLine::add_flag(const std::string& names, bool& variable, const std::string& description) {
  return &options_.emplace_back(*app_->add_flag(names, variable, description));
}

void CommandLine::group(const std::string& heading) {
  app_->option_defaults()->group(heading);
}

std::optional<std::string> CommandLine::first_given(const std::string& group) const {
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() != 0 && option->get_group() == group) return option->get_name();
  }
  return std::nullopt;
}

void CommandLine::ends_with_a_program() {
  app_->positionals_at_end();
  app_->prefix_command();
}

void CommandLine::take_program(std::vector<std::string>& words) const {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (program_ == nullptr || dashes == words.end()) return;
  for (auto word = dashes + 1; word != words.end(); ++word) {
    restore_word(*word);
    program_->push_back(std::move(*word));
  }
  words.erase(dashes, words.end());
}

void CommandLine::footer(const std::string& text) {
  app_->footer(text);
}

bool CommandLine::given(const std::string& name) const {
  return app_->count(name) != 0;
}

std::vector<std::string> CommandLine::words_given(const std::vector<std::string>& without) const {
  std::vector<std::string> words;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() == 0 || option->get_positional()) continue;
    const std::string name = option->get_name();
    if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    const bool flag = option->get_items_expected_max() == 0;
    if (flag) words.push_back(name);
    if (flag) continue;
    for (const std::string& value : option->results()) words.push_back(fmt::format("{}={}", name, value));
  }
  return words;
}

const CLI::App& CommandLine::program() const {
  return app_->get_parent() == nullptr ? *app_ : *app_->get_parent();
}

}  // namespace tidemark::cli
