#include "base/standard_streams.h"
#include "cli/application.h"

int main(int argc, char** argv) {
  tidemark::hold_closed_descriptors();
  return tidemark::cli::run_application(argc, argv);
}
