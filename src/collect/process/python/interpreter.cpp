#include "collect/process/python/interpreter.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace tidemark::process {
namespace {

struct LibraryName {
  char path[512];
};

int note_libpython(dl_phdr_info* info, std::size_t, void* data) {
  auto* found = static_cast<LibraryName*>(data);
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
  if (std::strncmp(file, "libpython3.", 11) != 0 || std::strlen(info->dlpi_name) >= sizeof found->path) return 0;
  std::strcpy(found->path, info->dlpi_name);
  return 1;
}

// Where to look for the interpreter's symbols. Programs that embed Python may load it with RTLD_LOCAL: then it is found
// by its name. The reference taken to it is kept, for we are about to point into it.
void* interpreter_scope() {
  if (dlsym(RTLD_DEFAULT, "Py_GetVersion") != nullptr) return RTLD_DEFAULT;
  LibraryName found{};
  if (dl_iterate_phdr(note_libpython, &found) == 0) return RTLD_DEFAULT;
  return dlopen(found.path, RTLD_LAZY | RTLD_NOLOAD);
}

template <typename Function>
Function* function_at(void* scope, const char* name, const char* older_name) {
  void* symbol = dlsym(scope, name);
  if (symbol == nullptr && older_name != nullptr) symbol = dlsym(scope, older_name);
  return reinterpret_cast<Function*>(symbol);
}

std::uintptr_t data_at(void* scope, const char* name) {
  return reinterpret_cast<std::uintptr_t>(dlsym(scope, name));
}

// Sets `function`. False when the interpreter does not have it.
template <typename Function>
bool find_function(void* scope, const char* name, Function** function) {
  *function = function_at<Function>(scope, name, nullptr);
  return *function != nullptr;
}

void find_object_functions(void* scope, ObjectFunctions* out) {
  out->complete =
      find_function(scope, "PyImport_GetModuleDict", &out->modules) &&
      find_function(scope, "PyModule_GetDict", &out->module_dict) &&
      find_function(scope, "PyObject_GetAttrString", &out->attribute) &&
      find_function(scope, "PyDict_GetItem", &out->dict_item) &&
      find_function(scope, "PyDict_GetItemString", &out->dict_item_string) &&
      find_function(scope, "PyList_Size", &out->list_size) && find_function(scope, "PyList_GetItem", &out->list_item) &&
      find_function(scope, "PyTuple_Size", &out->tuple_size) &&
      find_function(scope, "PyTuple_GetItem", &out->tuple_item) &&
      find_function(scope, "PyLong_AsLong", &out->as_long) && find_function(scope, "Py_DecRef", &out->release) &&
      find_function(scope, "PyErr_Occurred", &out->error) && find_function(scope, "PyErr_Clear", &out->clear_error);
}

// "3.11.7 (main, …) [GCC …]": the text up to the space, and its first two numbers.
void parse_version(const char* text, Interpreter* out) {
  std::size_t length = 0;
  while (text[length] != '\0' && text[length] != ' ' && length + 1 < sizeof out->version_text) ++length;
  std::memcpy(out->version_text, text, length);
  out->version_text[length] = '\0';
  unsigned numbers[2] = {0, 0};
  const char* at = out->version_text;
  for (unsigned& number : numbers) {
    while (*at >= '0' && *at <= '9' && number < 256) number = number * 10 + static_cast<unsigned>(*at++ - '0');
    if (*at == '.') ++at;
  }
  if (numbers[0] < 256 && numbers[1] < 256) out->version = static_cast<std::uint16_t>(numbers[0] << 8 | numbers[1]);
}

// The executable segment that an address lies in.
struct Segment {
  std::uintptr_t address;
  std::uintptr_t low, high;
};

int note_segment(dl_phdr_info* info, std::size_t, void* data) {
  auto* segment = static_cast<Segment*>(data);
  for (std::size_t index = 0; index < info->dlpi_phnum; ++index) {
    const ElfW(Phdr)& header = info->dlpi_phdr[index];
    const std::uintptr_t low = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    if (segment->address < low || segment->address - low >= header.p_memsz) continue;
    segment->low = low;
    segment->high = low + header.p_memsz;
    return 1;
  }
  return 0;
}

// The eval function takes 35 to 55 KiB when it is in one piece. Newer compilers leave an entry of 1 or 2 KiB and put
// the rest elsewhere without a name, and interpreters built with tail calls run in a function for each instruction. Of
// those all code of the interpreter is taken.
constexpr std::uintptr_t kWholeEvalFunction = 8192;

void find_eval_range(void* scope, Interpreter* out) {
  void* eval = dlsym(scope, "_PyEval_EvalFrameDefault");
  Dl_info info;
  void* entry = nullptr;
  if (eval == nullptr || dladdr1(eval, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr) return;
  out->eval_low = reinterpret_cast<std::uintptr_t>(eval);
  out->eval_high = out->eval_low + static_cast<const ElfW(Sym)*>(entry)->st_size;
  if (out->eval_high - out->eval_low >= kWholeEvalFunction) return;
  Segment segment{out->eval_low, 0, 0};
  if (dl_iterate_phdr(note_segment, &segment) == 0) return;
  out->eval_low = segment.low;
  out->eval_high = segment.high;
}

}  // namespace

bool find_interpreter(Interpreter* out) noexcept {
  void* scope = interpreter_scope();
  const auto get_version = function_at<const char*()>(scope, "Py_GetVersion", nullptr);
  if (get_version == nullptr) return false;
  *out = Interpreter{};
  const char* version = get_version();  // returns static text, needs no initialized interpreter
  parse_version(version, out);
  out->scope = scope;
  out->this_thread_state = function_at<void*()>(scope, "PyGILState_GetThisThreadState", nullptr);
  out->current_thread_state = function_at<void*()>(scope, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
  out->interpreter_of = function_at<void*(void*)>(scope, "PyThreadState_GetInterpreter", nullptr);
  out->is_finalizing = function_at<int()>(scope, "Py_IsFinalizing", "_Py_IsFinalizing");
  out->code_type = data_at(scope, "PyCode_Type");
  out->runtime = data_at(scope, "_PyRuntime");
  find_object_functions(scope, &out->objects);
  find_eval_range(scope, out);
  const bool complete = out->this_thread_state != nullptr && out->current_thread_state != nullptr &&
                        out->interpreter_of != nullptr && out->is_finalizing != nullptr && out->code_type != 0;
  const bool free_threaded = std::strstr(version, "free-threading") != nullptr;
  const bool debug = data_at(scope, "_Py_NegativeRefcount") != 0;  // only where Py_REF_DEBUG is defined
  out->ordinary = complete && !free_threaded && !debug;
  return true;
}

}  // namespace tidemark::process
