#include "analyze/sweep/least_squares.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace tidemark {
namespace {

constexpr double kDependent = 1e-9;  // of a column's length, what is left of it without its share of the others

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void subtract(std::vector<double>& from, const std::vector<double>& what, double times) {
  for (std::size_t index = 0; index < from.size(); ++index) from[index] -= times * what[index];
}

}  // namespace

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

// With H = QQ' and the residuals r, those of two rows that are left out solve (I - H) e = r, of these rows.
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
