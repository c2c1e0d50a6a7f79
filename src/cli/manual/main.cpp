// Makes the manual page while building: tidemark_manual TEMPLATE > tidemark.1
#include <fstream>
#include <sstream>

#include "cli/application.h"
#include "cli/command.h"
#include "cli/help.h"

int main(int argc, char** argv) {
  std::ostringstream page;
  if (argc != 2 || !(page << std::ifstream(argv[1]).rdbuf()))
    return tidemark::cli::fail("no template of the manual page");
  const tidemark::cli::Application application = tidemark::cli::make_application();
  return tidemark::cli::print(tidemark::cli::manual_page(tidemark::cli::command_model(*application.app), page.str()));
}
