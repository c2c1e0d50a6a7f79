#include "cli/application.h"

int main(int argc, char** argv) {
  return tidemark::cli::run_application(argc, argv);
}
