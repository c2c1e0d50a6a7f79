#include "sweep/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace tidemark {
namespace {

bool is_letter(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::all_of(text.begin(), text.end(), [](char letter) {
    return is_letter(letter) || std::isdigit(static_cast<unsigned char>(letter)) != 0 || letter == '-';
  });
}

/// "NAME[=OPTION][=VALUES]", split.
struct Parts {
  VariedArgument argument;
  std::string_view values;
};

Result<Parts> split_argument(std::string_view text) {
  Parts parts;
  const std::string_view whole = text;
  const auto take = [&text] {
    const std::size_t end = std::min(text.find('='), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
  };
  parts.argument.name = take();
  parts.argument.option = "--" + parts.argument.name;
  if (text.size() > 1 && text.front() == '-' && (text[1] == '-' || is_letter(text[1]))) parts.argument.option = take();
  parts.values = text;
  if (is_name(parts.argument.name)) return parts;
  return Error{fmt::format("'{}': expected NAME or NAME=OPTION, such as batch=--batch-size", whole)};
}

struct WrittenRange {
  ValueRange range;
  bool has_step = false;
};

// "1..64" or "8..64:8".
Result<WrittenRange> parse_range(std::string_view text) {
  const Error wrong{fmt::format("'{}': expected a range of whole numbers such as 1..64, or 8..64:8 with a step", text)};
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return wrong;
  std::string_view high = text.substr(dots + 2);
  WrittenRange written;
  if (const std::size_t colon = high.find(':'); colon != std::string_view::npos) {
    const auto step = parse_number<std::uint64_t>(high.substr(colon + 1));
    if (!step || *step == 0) return Error{fmt::format("'{}': the step has to be 1 or more", text)};
    written.range.step = *step;
    written.has_step = true;
    high = high.substr(0, colon);
  }
  const auto first = parse_number<std::uint64_t>(text.substr(0, dots));
  const auto last = parse_number<std::uint64_t>(high);
  if (!first || !last) return wrong;
  if (*first > *last) return Error{fmt::format("'{}': an empty range", text)};
  if (*last > std::uint64_t{1} << 48) return Error{fmt::format("'{}': the range ends beyond 2^48", text)};
  if (*first == 0 && !written.has_step) {
    return Error{fmt::format("'{}': a range without a step begins with 1 or more", text)};
  }
  written.range.low = *first;
  written.range.high = *last - (*last - *first) % written.range.step;
  return written;
}

Result<std::vector<std::string>> parse_values(std::string_view text) {
  std::vector<std::string> values;
  if (text.find("..") != std::string_view::npos) {
    const auto written = parse_range(text);
    if (!written) return written.error();
    const ValueRange& range = written->range;
    if (written->has_step && (range.high - range.low) / range.step >= kMaxValues) {
      return Error{fmt::format("'{}': more than {} values", text, kMaxValues)};
    }
    for (std::uint64_t value = range.low; value < range.high;
         value = written->has_step ? value + range.step : 2 * value)
      values.push_back(std::to_string(value));
    values.push_back(std::to_string(range.high));
    return values;
  }
  return parse_list(text);
}

// Replaces "{name}" by the result of `value_of(name)`, and "{{name}}" by "{name}". Braces around other characters are
// kept.
template <typename ValueOf>
std::string fill(const std::string& text, const ValueOf& value_of) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const bool doubled = text.compare(at, 2, "{{") == 0;
    const std::size_t begin = at + (doubled ? 2 : 1);
    const std::size_t end = text[at] == '{' ? text.find('}', begin) : std::string::npos;
    const std::string name = end == std::string::npos ? "" : text.substr(begin, end - begin);
    if (is_name(name) && (!doubled || text.compare(end, 2, "}}") == 0)) {
      filled += doubled ? "{" + name + "}" : value_of(name);
      at = end + (doubled ? 2 : 1);
    } else {
      filled += text[at++];
    }
  }
  return filled;
}

// Sets `option` wherever the command has it. False if it is missing.
bool set_option(std::vector<std::string>& command, const std::string& option, const std::string& value) {
  bool found = false;
  for (std::size_t index = 1; index < command.size(); ++index) {
    if (command[index].starts_with(option + "=")) {
      command[index].replace(option.size() + 1, std::string::npos, value);
    } else if (command[index] == option && index + 1 < command.size()) {
      command[++index] = value;
    } else if (command[index] == option) {
      command.push_back(value);
      return true;
    } else {
      continue;
    }
    found = true;
  }
  return found;
}

}  // namespace

Result<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> values;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string value(text.substr(0, comma));
    if (value.empty()) return Error{"a value is empty"};
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
    if (values.size() > kMaxValues) return Error{fmt::format("more than {} values", kMaxValues)};
    if (comma == text.size()) return values;
    text.remove_prefix(comma + 1);
  }
}

Result<VariedArgument> parse_varied(std::string_view text) {
  auto parts = split_argument(text);
  if (!parts) return parts.error();
  if (parts->values.empty()) {
    return Error{fmt::format("'{}': has no values; expected some such as {}=1,2,4 or {}=1..64", text,
                             parts->argument.name, parts->argument.name)};
  }
  auto values = parse_values(parts->values);
  if (!values) return Error{fmt::format("{}: {}", parts->argument.name, values.error().message)};
  parts->argument.values = std::move(*values);
  return std::move(parts->argument);
}

Result<FittedArgument> parse_fitted(std::string_view text) {
  auto parts = split_argument(text);
  if (!parts) return parts.error();
  FittedArgument fitted{std::move(parts->argument), {1, kHighestFit, 1}};
  if (parts->values.empty()) return fitted;
  const auto written = parse_range(parts->values);
  if (!written) return Error{fmt::format("{}: {}", fitted.argument.name, written.error().message)};
  fitted.range = written->range;
  return fitted;
}

Result<VariedProgram> VariedProgram::create(std::vector<std::string> command, std::vector<VariedArgument> arguments) {
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    for (std::size_t other = 0; other < index; ++other) {
      if (arguments[index].name != arguments[other].name) continue;
      return Error{fmt::format("{} is given twice", arguments[index].name)};
    }
  }
  std::string unknown;
  for (const std::string& word : command) {
    static_cast<void>(fill(word, [&](const std::string& name) {
      const bool known = std::any_of(arguments.begin(), arguments.end(),
                                     [&](const VariedArgument& argument) { return argument.name == name; });
      if (!known && unknown.empty()) unknown = name;
      return std::string();
    }));
  }
  if (unknown.empty()) return VariedProgram(std::move(command), std::move(arguments));
  return Error{
      fmt::format("{{{}}} in the program's arguments: no argument of this name is varied; write {{{{{}}}}} for "
                  "the text itself",
                  unknown, unknown)};
}

std::vector<std::string> VariedProgram::with(std::span<const std::string> values) const {
  std::vector<bool> filled(arguments_.size());
  std::vector<std::string> command;
  for (const std::string& word : command_) {
    command.push_back(fill(word, [&](const std::string& name) {
      const auto found = std::find_if(arguments_.begin(), arguments_.end(),
                                      [&](const VariedArgument& argument) { return argument.name == name; });
      const auto index = static_cast<std::size_t>(found - arguments_.begin());
      filled[index] = true;
      return values[index];
    }));
  }
  for (std::size_t index = 0; index < arguments_.size(); ++index) {
    const std::string& option = arguments_[index].option;
    if (filled[index] || set_option(command, option, values[index])) continue;
    command.push_back(option);
    command.push_back(values[index]);
  }
  return command;
}

}  // namespace tidemark
