// A library with symbols that the tests compare with nm's output.
#include <vector>

namespace outer {
namespace {

__attribute__((noinline, used)) int hidden(int value) {
  return value * 3;
}

}  // namespace

struct Thing {
  int method(const std::vector<int>& values) const;
};

int Thing::method(const std::vector<int>& values) const {
  return hidden(static_cast<int>(values.size()));
}

template <typename T>
T twice(T value) {
  return value + value;
}
template double twice<double>(double);

}  // namespace outer

extern "C" int plain_c_function(int value) {
  return value + 1;
}
