// Prints the unwind rules of a library at the file addresses given on stdin (hexadecimal, one a line), as
// "address kind offset saved_fp slot". The library is loaded, so that the rules come from its image in memory.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>

#include "collect/process/native/loaded_object.h"
#include "collect/process/native/unwind_rule.h"

int main(int argc, char** argv) {
  using tidemark::process::LoadedObject;
  using tidemark::process::UnwindRule;
  static const char* const kKinds[] = {"none", "sp", "fp", "*fp", "chain", "signal", "end"};
  static const char* const kSaved[] = {"same", "cfa", "fp", "unknown"};
  void* handle = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
    std::fprintf(stderr, "print_rules: cannot load %s\n", argc == 2 ? argv[1] : "LIBRARY");
    return 77;
  }
  std::printf("%s\n", map->l_name);
  LoadedObject object;
  if (!tidemark::process::find_loaded_object(reinterpret_cast<std::uintptr_t>(map->l_ld), &object)) return 1;
  const auto* header = object.header(PT_GNU_EH_FRAME);
  if (header == nullptr) return 1;
  const auto address = object.bias + header->p_vaddr;
  const auto segment = object.segment_at(address);
  unsigned long pc = 0;
  while (std::scanf("%lx", &pc) == 1) {
    const UnwindRule rule = tidemark::process::unpack(pack(unwind_rule_at(segment, address, object.bias + pc)));
    std::printf("%lx %s %d %s %d\n", pc, kKinds[static_cast<int>(rule.kind)], rule.cfa_offset,
                kSaved[static_cast<int>(rule.saved_fp)], rule.fp_slot);
  }
}
