// The profile of the phantom GPU that these tests run with: an H200.
#include <stdlib.h>

namespace {

const int set = ::setenv("TIDEMARK_PHANTOM", TIDEMARK_TEST_PROFILE, 1);

}  // namespace
