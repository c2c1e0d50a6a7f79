// Linear least squares for small, dense problems, with what cross-validation needs.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tidemark {

/// Rows of numbers, all as long as the first.
using Rows = std::vector<std::vector<double>>;

/// The coefficients with the least sum of squared residuals, by a QR decomposition of the rows.
class LeastSquares {
 public:
  /// None where there are fewer rows than columns, or where a column depends on others.
  static std::optional<LeastSquares> solve(const Rows& rows, const std::vector<double>& values);

  [[nodiscard]] const std::vector<double>& coefficients() const { return coefficients_; }
  /// Of each row, its value less what the others predict for it: r / (1 - h), where r is its residual and h its
  /// leverage (Hastie, Tibshirani, Friedman: The Elements of Statistical Learning, 7.10). None for a row without which
  /// there is no solution.
  [[nodiscard]] const std::vector<std::optional<double>>& left_out_residuals() const { return left_out_; }
  /// Of row `left`, its value less what is predicted where row `other` is left out too. None where these two are
  /// needed.
  [[nodiscard]] std::optional<double> left_out_residual(std::size_t left, std::size_t other) const;
  /// The variance of a prediction for this row, in units of that of the residuals: high far from the rows.
  [[nodiscard]] double leverage(const std::vector<double>& row) const;

 private:
  std::vector<double> scales_;  // by column
  Rows upper_;                  // R of the scaled columns, by column
  std::vector<double> coefficients_;
  std::vector<double> residuals_;
  Rows orthogonal_;  // Q, by column
  std::vector<std::optional<double>> left_out_;
};

}  // namespace tidemark
