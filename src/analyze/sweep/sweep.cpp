#include "analyze/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace tidemark {
namespace {

// `bytes_of(result)`: nullopt or 0 for a trial that does not count.
template <typename BytesOf>
std::optional<Law> law_of(const Sweep& sweep, std::size_t groups, const BytesOf& bytes_of) {
  std::vector<LawPoint> points;
  for (const SweepRow& row : sweep.rows) {
    const std::optional<std::uint64_t> bytes = row.measured() ? bytes_of(*row.result) : std::nullopt;
    if (bytes.value_or(0) == 0) continue;
    points.push_back({sweep.numbers_of(row), sweep.group_of(row), static_cast<double>(*bytes)});
  }
  return Law::find(points, groups);
}

std::optional<std::uint64_t> held_by(const TrialResult& result, Category category) {
  for (const HeldByCategory& held : result.categories) {
    if (held.category == category) return held.bytes;
  }
  return std::nullopt;
}

std::vector<CategoryLaw> laws_by_category(const Sweep& sweep, std::size_t groups) {
  std::vector<CategoryLaw> laws;
  for (const EnumName<Category>& entry : kCategoryNames) {
    const Category category = entry.value;
    const bool always = std::all_of(sweep.rows.begin(), sweep.rows.end(), [category](const SweepRow& row) {
      return !row.measured() || row.result->categories.empty() || held_by(*row.result, category).value_or(0) != 0;
    });
    if (!always) continue;
    auto law = law_of(sweep, groups, [category](const TrialResult& result) { return held_by(result, category); });
    if (law) laws.push_back({category, std::move(*law)});
  }
  return laws;
}

// Whether a configuration of the same group with no larger number ran out of memory.
bool is_beyond_memory(const Sweep& sweep, const SweepRow& row) {
  const std::vector<double> numbers = sweep.numbers_of(row);
  return std::any_of(sweep.rows.begin(), sweep.rows.end(), [&](const SweepRow& other) {
    if (!other.result || !other.result->out_of_memory || sweep.group_of(other) != sweep.group_of(row)) return false;
    const std::vector<double> others = sweep.numbers_of(other);
    return std::equal(others.begin(), others.end(), numbers.begin(), [](double a, double b) { return a <= b; });
  });
}

// How far apart, with 1 for the whole range of an argument.
double distance(const Sweep& sweep, const SweepRow& a, const SweepRow& b) {
  double squares = a.gpu == b.gpu ? 0 : 1;
  for (std::size_t argument = 0; argument < a.values.size(); ++argument) {
    const std::vector<std::string>& values = sweep.arguments[argument].values;
    const auto place = [&](const SweepRow& row) {
      return static_cast<double>(std::find(values.begin(), values.end(), row.values[argument]) - values.begin());
    };
    const double apart = (place(a) - place(b)) / static_cast<double>(std::max<std::size_t>(2, values.size()) - 1);
    squares += apart * apart;
  }
  return std::sqrt(squares);
}

// The row with the highest score; nullopt if no row has one.
template <typename Score>
std::optional<std::size_t> best_row(const Sweep& sweep, const std::vector<bool>& taken, const Score& score) {
  std::optional<std::size_t> best;
  double highest = -std::numeric_limits<double>::infinity();
  for (std::size_t index = 0; index < sweep.rows.size(); ++index) {
    if (taken[index] || sweep.rows[index].result) continue;
    const double of_row = score(sweep.rows[index]);
    if (of_row > highest) best = index;
    highest = std::max(highest, of_row);
  }
  return best;
}

// Memory of a process besides PyTorch's reserved memory: the context, and the maximum of the trials beyond theirs.
std::uint64_t beside_reserved(const Sweep& sweep, const SweptGpu& gpu) {
  if (!gpu.context_bytes) return 0;
  std::uint64_t libraries = 0;
  for (const SweepRow& row : sweep.rows) {
    if (!row.result || !row.result->device_used_bytes || !row.result->peak_reserved_bytes) continue;
    const std::uint64_t known = *row.result->peak_reserved_bytes + sweep.gpus[row.gpu].context_bytes.value_or(0);
    libraries = std::max(libraries, *row.result->device_used_bytes - std::min(known, *row.result->device_used_bytes));
  }
  return *gpu.context_bytes + libraries;
}

}  // namespace

std::optional<bool> SweepRow::fits() const {
  if (result) return result->fits;
  return prediction ? prediction->fits : std::nullopt;
}

std::optional<double> number_of(std::string_view text) {
  const auto number = parse_number<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::vector<std::size_t> Sweep::numeric() const {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::vector<std::string>& values = arguments[index].values;
    if (std::all_of(values.begin(), values.end(), [](const std::string& value) { return number_of(value); })) {
      found.push_back(index);
    }
  }
  return found;
}

std::vector<std::string> Sweep::groups() const {
  const std::vector<std::size_t> numbers = numeric();
  std::vector<std::string> words = {""};
  const auto add = [&words](const std::string& name, const std::vector<std::string>& values) {
    std::vector<std::string> longer;
    for (const std::string& before : words) {
      for (const std::string& value : values) {
        std::string& word = longer.emplace_back(before);
        word.append(before.empty() ? "" : ", ").append(name).append(value);
      }
    }
    words = std::move(longer);
  };
  std::vector<std::string> names;
  for (const SweptGpu& gpu : gpus) names.push_back(gpu.name);
  if (gpus.size() > 1) add("", names);
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    if (std::find(numbers.begin(), numbers.end(), index) != numbers.end()) continue;
    add(arguments[index].name + "=", arguments[index].values);
  }
  return words;
}

// In the order of groups(): the last argument changes fastest.
std::size_t Sweep::group_of(const SweepRow& row) const {
  const std::vector<std::size_t> numbers = numeric();
  std::size_t group = row.gpu;
  for (std::size_t argument = 0; argument < arguments.size(); ++argument) {
    if (std::find(numbers.begin(), numbers.end(), argument) != numbers.end()) continue;
    const std::vector<std::string>& values = arguments[argument].values;
    const auto at = std::find(values.begin(), values.end(), row.values[argument]);
    group = group * values.size() + static_cast<std::size_t>(at - values.begin());
  }
  return group;
}

std::vector<double> Sweep::numbers_of(const SweepRow& row) const {
  std::vector<double> numbers;
  for (const std::size_t index : numeric()) numbers.push_back(number_of(row.values[index]).value_or(0));
  return numbers;
}

void add_combinations(Sweep& sweep, const KeepsCombination& keeps) {
  std::size_t each = 1;
  for (const VariedArgument& argument : sweep.arguments) each *= argument.values.size();
  for (std::size_t gpu = 0; gpu < sweep.gpus.size(); ++gpu) {
    for (std::size_t index = 0; index < each; ++index) {
      SweepRow row;
      row.gpu = gpu;
      row.values.resize(sweep.arguments.size());
      std::size_t left = index;
      for (std::size_t argument = sweep.arguments.size(); argument-- > 0;) {
        const std::vector<std::string>& values = sweep.arguments[argument].values;
        row.values[argument] = values[left % values.size()];
        left /= values.size();
      }
      if (!keeps || keeps(row.values)) sweep.rows.push_back(std::move(row));
    }
  }
}

void predict(Sweep& sweep) {
  const std::size_t groups = sweep.groups().size();
  sweep.allocated = law_of(sweep, groups, [](const TrialResult& result) { return result.peak_allocated_bytes; });
  sweep.reserved = law_of(sweep, groups, [](const TrialResult& result) { return result.peak_reserved_bytes; });
  sweep.by_category = laws_by_category(sweep, groups);
  for (SweepRow& row : sweep.rows) {
    row.prediction.reset();
    if (row.measured()) continue;
    Prediction prediction;
    const std::vector<double> numbers = sweep.numbers_of(row);
    const std::size_t group = sweep.group_of(row);
    const auto allocated = sweep.allocated ? sweep.allocated->at(numbers, group) : std::nullopt;
    const auto reserved = sweep.reserved ? sweep.reserved->at(numbers, group) : std::nullopt;
    const SweptGpu& gpu = sweep.gpus[row.gpu];
    if (allocated && reserved) {
      prediction.peak_allocated_bytes = static_cast<std::uint64_t>(*allocated);
      prediction.peak_reserved_bytes = static_cast<std::uint64_t>(std::max(*allocated, *reserved));
      const std::uint64_t used = *prediction.peak_reserved_bytes + beside_reserved(sweep, gpu);
      if (gpu.memory_bytes) prediction.fits = used <= *gpu.memory_bytes;
    }
    if (is_beyond_memory(sweep, row)) prediction.fits = false;
    if (prediction.fits || prediction.peak_allocated_bytes) row.prediction = prediction;
  }
}

std::optional<std::size_t> next_row(const Sweep& sweep, const std::vector<bool>& taken) {
  const auto begun = static_cast<std::size_t>(std::count(taken.begin(), taken.end(), true));
  if (!sweep.reserved) {
    return best_row(sweep, taken, [&](const SweepRow& row) {
      double nearest = std::numeric_limits<double>::max();
      for (std::size_t index = 0; index < sweep.rows.size(); ++index) {
        const SweepRow& other = sweep.rows[index];
        if (taken[index] || other.result) nearest = std::min(nearest, distance(sweep, row, other));
      }
      return nearest;
    });
  }
  const bool at_limit = begun % 2 == 0;
  return best_row(sweep, taken, [&](const SweepRow& row) {
    const SweptGpu& gpu = sweep.gpus[row.gpu];
    const auto reserved = row.prediction ? row.prediction->peak_reserved_bytes : std::nullopt;
    // Rows known not to fit, without a law for their group, come last.
    if (!reserved && row.prediction) return std::numeric_limits<double>::lowest();
    if (!at_limit || !gpu.memory_bytes || !reserved) {
      return sweep.reserved->uncertainty(sweep.numbers_of(row), sweep.group_of(row));
    }
    const auto used = static_cast<double>(*reserved + beside_reserved(sweep, gpu));
    return -std::abs(used / static_cast<double>(*gpu.memory_bytes) - 1);
  });
}

}  // namespace tidemark
