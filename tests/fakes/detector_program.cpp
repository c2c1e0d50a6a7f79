// A program that watches with the C++ API: prints "ready", and writes its report to a file when it reads any input.
//
//   fakes_detector REPORT
#include <tidemark/monitors.h>

#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  tidemark::MonitorSettings settings;
  settings.interval_seconds = 0.1;
  tidemark::OomDetector detector(settings);
  detector.start_monitoring();
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  detector.generate_report(argv[1]);
  return 0;
}
