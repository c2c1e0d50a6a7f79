#include "analyze/sweep/law.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

namespace tidemark {

namespace {

constexpr std::size_t kMaxTerms = 4;       // besides the constant
constexpr std::size_t kMaxTried = 40'000;  // sums of products
constexpr int kMaxDegree = 3;              // batch * seq * seq
constexpr double kPrice = 2;               // minimum factor by which another coefficient has to lower the squared error
constexpr std::size_t kMaxLeftOut = 48;    // maximum number of trials used to estimate the error of the choice
constexpr double kExact = 1e-6;            // shares of bytes; less than that are roundings of sizes
constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

using Powers = std::vector<int>;

double product(const Powers& powers, const std::vector<double>& numbers) {
  double value = 1;
  for (std::size_t index = 0; index < powers.size(); ++index) value *= std::pow(numbers[index], powers[index]);
  return value;
}

// All products of the arguments up to the degree, without the constant; lowest degree first.
std::vector<Powers> products(std::size_t arguments) {
  std::vector<Powers> found;
  Powers powers(arguments, 0);
  const auto add = [&](const auto& self, std::size_t argument, int left) -> void {
    if (argument == arguments) {
      if (left < kMaxDegree) found.push_back(powers);
      return;
    }
    for (int power = 0; power <= std::min(left, 2); ++power) {
      powers[argument] = power;
      self(self, argument + 1, left - power);
    }
    powers[argument] = 0;
  };
  add(add, 0, kMaxDegree);
  const auto degree = [](const Powers& of) { return std::accumulate(of.begin(), of.end(), 0); };
  std::stable_sort(found.begin(), found.end(), [&](const Powers& a, const Powers& b) { return degree(a) < degree(b); });
  return found;
}

// Calls `visit` with the indexes of each choice of up to kMaxTerms of `count`, the smallest choices first.
template <typename Visit>
void choose(std::size_t count, const Visit& visit) {
  std::size_t tried = 0;
  for (std::size_t size = 0; size <= std::min(count, kMaxTerms); ++size) {
    std::vector<std::size_t> chosen(size);
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    while (true) {
      visit(chosen);
      if (++tried == kMaxTried) return;
      std::size_t last = size;
      while (last > 0 && chosen[last - 1] == count - size + last - 1) --last;
      if (last == 0) break;
      ++chosen[last - 1];
      std::iota(chosen.begin() + static_cast<std::ptrdiff_t>(last), chosen.end(), chosen[last - 1] + 1);
    }
  }
}

// The values of a term in a row: one column, or one for each group.
void add_columns(std::vector<double>& row, double value, bool by_group, std::size_t group, std::size_t groups) {
  if (!by_group) {
    row.push_back(value);
    return;
  }
  for (std::size_t index = 0; index < groups; ++index) row.push_back(index == group ? value : 0);
}

// Parts of a law with separate coefficients for each group.
enum class Apart : std::uint8_t { nothing, constant, everything };

struct Candidate {
  std::vector<std::size_t> products;  // besides the constant
  Apart apart = Apart::nothing;
  double score = 0;
  LeastSquares solved;
};

// Score of a law, from its squared prediction error and number of coefficients; lower is better. If few trials are left
// over, a coefficient costs more. The form of the penalty is from Hurvich and Tsai (Biometrika 76, 1989).
double score_of(double squares, std::size_t points, std::size_t coefficients) {
  const auto count = static_cast<double>(points);
  const auto used = static_cast<double>(coefficients);
  const double error = std::max(kExact * kExact, squares / count);
  return std::log(error) + std::log(kPrice) * used * count / std::max(0.5, count - used);
}

// For each of some trials, the law chosen without it, and its prediction for the trial.
class LeftOut {
 public:
  explicit LeftOut(std::size_t points) : points_(points), best_(std::min(points, kMaxLeftOut)) {}

  void consider(const LeastSquares& solved) {
    if (points_ < 3) return;
    for (std::size_t index = 0; index < best_.size(); ++index) {
      const std::size_t left = index * points_ / best_.size();
      std::optional<double> squares = 0;
      for (std::size_t point = 0; point < points_ && squares; ++point) {
        if (point == left) continue;
        const auto residual = solved.left_out_residual(point, left);
        squares = residual ? std::optional(*squares + *residual * *residual) : std::nullopt;
      }
      if (!squares) continue;
      const double score = score_of(*squares, points_ - 1, solved.coefficients().size());
      if (!best_[index] || score < best_[index]->score) best_[index] = {score, *solved.left_out_residuals()[left]};
    }
  }

  // Ascending shares; if too few trials are left to choose a law, the errors of the chosen one.
  [[nodiscard]] std::vector<double> errors(const LeastSquares& chosen) const {
    std::vector<double> found;
    for (std::size_t index = 0; index < best_.size(); ++index) {
      const double own = *chosen.left_out_residuals()[index * points_ / best_.size()];
      found.push_back(std::abs(best_[index] ? best_[index]->residual : own));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  struct Best {
    double score = 0;
    double residual = 0;
  };

  std::size_t points_;
  std::vector<std::optional<Best>> best_;
};

constexpr double kDependent = 1e-9;  // of a column's length: minimum remainder without its share of the others

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void subtract(std::vector<double>& from, const std::vector<double>& what, double times) {
  for (std::size_t index = 0; index < from.size(); ++index) from[index] -= times * what[index];
}

}  // namespace

std::optional<Law> Law::find(const std::vector<LawPoint>& points, std::size_t groups) {
  Law law;
  law.columns_of_groups_.assign(groups, kNoGroup);
  for (const LawPoint& point : points) {
    std::size_t& column = law.columns_of_groups_[point.group];
    if (column == kNoGroup) column = law.groups_with_points_++;
  }
  if (points.size() < 2) return std::nullopt;
  const std::size_t arguments = points.front().numbers.size();
  const std::vector<Powers> all = products(arguments);
  // Predictions are shares: each row and its value are divided by the value.
  const std::vector<double> ones(points.size(), 1.0);
  Rows shares;  // by point, of each product
  for (const LawPoint& point : points) {
    std::vector<double>& row = shares.emplace_back();
    for (const Powers& powers : all) row.push_back(product(powers, point.numbers) / point.bytes);
  }

  std::optional<Candidate> best;
  LeftOut left_out_choices(points.size());
  const auto consider = [&](const std::vector<std::size_t>& chosen, Apart apart) {
    Rows rows;
    for (std::size_t point = 0; point < points.size(); ++point) {
      std::vector<double>& row = rows.emplace_back();
      const std::size_t group = law.columns_of_groups_[points[point].group];
      const auto add = [&](double value, bool by_group) {
        add_columns(row, value, by_group, group, law.groups_with_points_);
      };
      add(1 / points[point].bytes, apart != Apart::nothing);
      for (const std::size_t index : chosen) add(shares[point][index], apart == Apart::everything);
    }
    auto solved = LeastSquares::solve(rows, ones);
    if (!solved) return;
    double squares = 0;
    for (const std::optional<double>& left_out : solved->left_out_residuals()) {
      if (!left_out) return;
      squares += *left_out * *left_out;
    }
    left_out_choices.consider(*solved);
    const double score = score_of(squares, points.size(), rows.front().size());
    if (!best || score < best->score) best = Candidate{chosen, apart, score, std::move(*solved)};
  };
  choose(all.size(), [&](const std::vector<std::size_t>& chosen) {
    consider(chosen, Apart::nothing);
    if (law.groups_with_points_ < 2) return;
    consider(chosen, Apart::constant);
    if (!chosen.empty()) consider(chosen, Apart::everything);
  });
  if (!best) return std::nullopt;

  std::vector<Powers> terms = {Powers(arguments, 0)};
  for (const std::size_t index : best->products) terms.push_back(all[index]);
  const std::vector<double>& solution = best->solved.coefficients();
  std::size_t column = 0;
  for (Powers& powers : terms) {
    const bool constant = law.terms_.empty();
    LawTerm& added = law.terms_.emplace_back(LawTerm{std::move(powers), {}});
    law.by_group_.push_back(best->apart == Apart::everything || (constant && best->apart == Apart::constant));
    if (!law.by_group_.back()) {
      added.coefficients.emplace_back(solution[column++]);
      continue;
    }
    for (const std::size_t group : law.columns_of_groups_) {
      added.coefficients.push_back(group == kNoGroup ? std::nullopt : std::optional(solution[column + group]));
    }
    column += law.groups_with_points_;
  }
  law.points_ = points.size();
  law.errors_ = left_out_choices.errors(best->solved);
  law.solved_ = std::move(best->solved);
  return law;
}

double Law::median_error_share() const {
  const std::size_t half = errors_.size() / 2;
  return errors_.size() % 2 == 1 ? errors_[half] : (errors_[half - 1] + errors_[half]) / 2;
}

double Law::largest_error_share() const {
  return errors_.back();
}

std::optional<double> Law::at(const std::vector<double>& numbers, std::size_t group) const {
  if (columns_of_groups_[group] == kNoGroup) return std::nullopt;
  double bytes = 0;
  for (const LawTerm& term : terms_) {
    bytes += term.coefficients[term.coefficients.size() == 1 ? 0 : group].value_or(0) * product(term.powers, numbers);
  }
  return std::max(0.0, bytes);
}

double Law::uncertainty(const std::vector<double>& numbers, std::size_t group) const {
  const std::optional<double> bytes = at(numbers, group);
  if (!bytes) return std::numeric_limits<double>::infinity();
  std::vector<double> row;
  for (std::size_t term = 0; term < terms_.size(); ++term) {
    add_columns(row, product(terms_[term].powers, numbers) / std::max(1.0, *bytes), by_group_[term],
                columns_of_groups_[group], groups_with_points_);
  }
  return std::sqrt(solved_.leverage(row));
}

std::optional<LeastSquares> LeastSquares::solve(const Rows& rows, const std::vector<double>& values) {
  const std::size_t count = rows.size();
  const std::size_t width = count == 0 ? 0 : rows.front().size();
  if (count < width || width == 0) return std::nullopt;
  LeastSquares solved;
  Rows orthogonal;  // Q, by column: Gram and Schmidt's, twice, which is as exact as Householder's
  for (std::size_t column = 0; column < width; ++column) {
    std::vector<double> q(count);
    for (std::size_t row = 0; row < count; ++row) q[row] = rows[row][column];
    const double scale = std::sqrt(dot(q, q));
    if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
    for (double& number : q) number /= scale;
    std::vector<double> upper(column + 1);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t before = 0; before < column; ++before) {
        const double share = dot(orthogonal[before], q);
        upper[before] += share;
        subtract(q, orthogonal[before], share);
      }
    }
    upper[column] = std::sqrt(dot(q, q));
    if (upper[column] < kDependent) return std::nullopt;
    for (double& number : q) number /= upper[column];
    solved.scales_.push_back(scale);
    solved.upper_.push_back(std::move(upper));
    orthogonal.push_back(std::move(q));
  }

  std::vector<double> residuals = values;
  std::vector<double> right(width);
  for (std::size_t column = 0; column < width; ++column) {
    right[column] = dot(orthogonal[column], residuals);
    subtract(residuals, orthogonal[column], right[column]);
  }
  solved.coefficients_.resize(width);
  for (std::size_t column = width; column-- > 0;) {
    double sum = right[column];
    for (std::size_t after = column + 1; after < width; ++after) {
      sum -= solved.upper_[after][column] * solved.coefficients_[after] * solved.scales_[after];
    }
    solved.coefficients_[column] = sum / solved.upper_[column][column] / solved.scales_[column];
  }
  for (std::size_t row = 0; row < count; ++row) {
    double own = 0;
    for (const std::vector<double>& q : orthogonal) own += q[row] * q[row];
    const bool needed = own > 1 - 1e-9;
    solved.left_out_.push_back(needed ? std::nullopt : std::optional(residuals[row] / (1 - own)));
  }
  solved.residuals_ = std::move(residuals);
  solved.orthogonal_ = std::move(orthogonal);
  return solved;
}

// With H = QQ' and the residuals r, the residuals e of two left-out rows solve (I - H) e = r, restricted to these rows.
std::optional<double> LeastSquares::left_out_residual(std::size_t left, std::size_t other) const {
  double own = 1;
  double others = 1;
  double shared = 0;
  for (const std::vector<double>& q : orthogonal_) {
    own -= q[left] * q[left];
    others -= q[other] * q[other];
    shared += q[left] * q[other];
  }
  const double determinant = own * others - shared * shared;
  if (determinant < 1e-9) return std::nullopt;
  return (residuals_[left] * others + residuals_[other] * shared) / determinant;
}

double LeastSquares::leverage(const std::vector<double>& row) const {
  std::vector<double> solved(scales_.size());  // of R^T s = row
  double sum = 0;
  for (std::size_t column = 0; column < solved.size(); ++column) {
    double value = row[column] / scales_[column];
    for (std::size_t before = 0; before < column; ++before) value -= upper_[column][before] * solved[before];
    solved[column] = value / upper_[column][column];
    sum += solved[column] * solved[column];
  }
  return sum;
}

}  // namespace tidemark
