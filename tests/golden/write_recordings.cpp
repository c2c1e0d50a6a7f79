// Writes the recordings of the golden tests into a folder, for tests in other languages: golden_recordings FOLDER.
#include <gtest/gtest.h>

#include "golden/recordings.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  tidemark::testing::write_golden_recordings(argv[1]);
  return ::testing::UnitTest::GetInstance()->Passed() ? 0 : 1;
}
