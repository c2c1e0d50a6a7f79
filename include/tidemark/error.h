/// @file
/// The exception of the C++ API.
#ifndef TIDEMARK_ERROR_H
#define TIDEMARK_ERROR_H

#include <tidemark/export.h>

#include <stdexcept>
#include <string>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// A request failed: what() is a sentence that names the file and the remedy.
///
/// Functions that are called repeatedly while a program runs (marks, ranges, metrics) do not throw.
class TIDEMARK_API Error : public std::runtime_error {
 public:
  /// Constructs with a sentence for the user.
  explicit Error(const std::string& message);
  Error(const Error&) = default;             ///< A copy.
  Error& operator=(const Error&) = default;  ///< A copy.
  ~Error() override;
};

}  // namespace v1
}  // namespace tidemark

#endif
