// The profile of the phantom GPU in these tests: an H200.
#include <stdlib.h>

namespace {

const int set = ::setenv("TIDEMARK_PHANTOM", TIDEMARK_TEST_PROFILE, 1);

}  // namespace
