#include "doctor/diagnosis.h"

namespace tidemark {

Diagnosis diagnose(const std::string& program) {
  Diagnosis diagnosis;
  diagnosis.inventory = take_inventory();
  check_gpus(diagnosis);
  check_python(program, diagnosis);
  check_cupti(diagnosis);
  check_injections(diagnosis);
  check_preload(diagnosis);
  check_memory(diagnosis);
  check_system(diagnosis);
  return diagnosis;
}

}  // namespace tidemark
