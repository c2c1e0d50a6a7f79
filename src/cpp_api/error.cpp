#include <tidemark/error.h>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
Error::Error(const std::string& message) : std::runtime_error(message) {}

Error::~Error() = default;

}  // namespace v1
}  // namespace tidemark
