// How memory grows with a program's arguments: bytes = a + b * batch + c * batch * seq + …, from trials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tidemark {

/// Rows of numbers, all as long as the first.
using Rows = std::vector<std::vector<double>>;

/// The coefficients with the least sum of squared residuals, by a QR decomposition of the rows.
class LeastSquares {
 public:
  /// nullopt if there are fewer rows than columns, or if a column depends on others.
  static std::optional<LeastSquares> solve(const Rows& rows, const std::vector<double>& values);

  [[nodiscard]] const std::vector<double>& coefficients() const { return coefficients_; }
  /// For each row, its value minus the prediction from the other rows: r / (1 - h), where r is its residual and h its
  /// leverage (Hastie, Tibshirani, Friedman: The Elements of Statistical Learning, 7.10). nullopt for a row without
  /// which there is no solution.
  [[nodiscard]] const std::vector<std::optional<double>>& left_out_residuals() const { return left_out_; }
  /// The value of row `left` minus its prediction without the rows `left` and `other`. nullopt if both are needed.
  [[nodiscard]] std::optional<double> left_out_residual(std::size_t left, std::size_t other) const;
  /// The variance of a prediction for this row, divided by the variance of the residuals: high far from the rows.
  [[nodiscard]] double leverage(const std::vector<double>& row) const;

 private:
  std::vector<double> scales_;  // by column
  Rows upper_;                  // R of the scaled columns, by column
  std::vector<double> coefficients_;
  std::vector<double> residuals_;
  Rows orthogonal_;  // Q, by column
  std::vector<std::optional<double>> left_out_;
};

/// One trial: the values of its numeric arguments, and its group by the other arguments (a law may have separate
/// coefficients for each group).
struct LawPoint {
  std::vector<double> numbers;
  std::size_t group = 0;
  double bytes = 0;
};

struct LawTerm {
  std::vector<int> powers;  ///< of the numeric arguments, 0 to 2: {1, 1} is batch * seq; all 0: the constant
  /// By group; one entry for all groups if it is shared. nullopt for a group without trials.
  std::vector<std::optional<double>> coefficients;
};

class Law {
 public:
  /// The sum of few products with the best predictions: every trial is predicted from the others (leave one out), in
  /// shares of its bytes; each further coefficient must halve the squared error, and lower it by more if few trials are
  /// left over. Coefficients are the same for all groups, or only the constant differs, or all differ, selected in the
  /// same way. nullopt if there are too few trials. `groups`: total number of groups, including groups without trials.
  static std::optional<Law> find(const std::vector<LawPoint>& points, std::size_t groups);

  [[nodiscard]] const std::vector<LawTerm>& terms() const { return terms_; }
  [[nodiscard]] std::size_t points() const { return points_; }
  /// Median over the trials, each predicted by the law found without it: |predicted - bytes| / bytes.
  [[nodiscard]] double median_error_share() const;
  [[nodiscard]] double largest_error_share() const;
  /// Bytes, at least 0; nullopt for a group without trials.
  [[nodiscard]] std::optional<double> at(const std::vector<double>& numbers, std::size_t group) const;
  /// Relative uncertainty of at(): high far from the trials. Infinite if at() is nullopt.
  [[nodiscard]] double uncertainty(const std::vector<double>& numbers, std::size_t group) const;

 private:
  std::vector<LawTerm> terms_;
  std::vector<std::size_t> columns_of_groups_;  // number of each group among groups with trials
  std::size_t groups_with_points_ = 0;
  std::vector<bool> by_group_;  // each term
  std::size_t points_ = 0;
  std::vector<double> errors_;  // shares, ascending
  LeastSquares solved_;
};

}  // namespace tidemark
