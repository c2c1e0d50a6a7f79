// The same from C++.
#include <tidemark/control.h>

#include <iostream>

int main() {
  tidemark_mark_if_recording("nearly done");
  std::cout << (tidemark_mark != nullptr ? "recorded\n" : "not recorded\n");
}
