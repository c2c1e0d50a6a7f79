#include "collect/process/python/interpreter.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

#include "collect/process/python/safe_read.h"

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

// The scope in which to look for the interpreter's symbols. Programs that embed Python may load it with RTLD_LOCAL:
// then it is found by its name. The reference to it is kept, because this library will hold pointers into it.
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

// Sets `function`. False if the interpreter does not have it.
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

// The executable segment that contains an address.
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

// The eval function takes 35 to 55 KiB if it is in one piece. Newer compilers leave an entry of 1 or 2 KiB and move the
// rest elsewhere without a name, and interpreters built with tail calls have a function for each instruction. For
// these, the range is all code of the interpreter.
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

constexpr unsigned kFramesChecked = 64;
constexpr std::int64_t kLongestText = 1 << 20;  // of a file or function name; longer ones mean a wrong offset

// From 3.13 on, the interpreter publishes its own offsets for debuggers.
bool debug_offsets_agree(const Layout& layout, std::uintptr_t runtime) noexcept {
  if (layout.debug_thread == 0) return true;
  char cookie[8];
  if (runtime == 0 || !safe_load(runtime, &cookie) || std::memcmp(cookie, "xdebugpy", sizeof cookie) != 0) return false;
  std::uint64_t words[64];
  if (!safe_load(runtime, &words)) return false;
  const std::uint64_t* thread = words + layout.debug_thread;
  const std::uint64_t* frame = words + layout.debug_frame;
  const std::uint64_t* code = words + layout.debug_code;
  return words[kDebugVersion] >> 16 == layout.version && words[kDebugFreeThreaded] == 0 &&
         thread[kDebugThreadInterpreter] == layout.thread_interpreter &&
         thread[kDebugThreadFrame] == layout.thread_frame && frame[kDebugFramePrevious] == layout.frame_previous &&
         frame[kDebugFrameCode] == layout.frame_code && frame[kDebugFrameInstruction] == layout.frame_instruction &&
         frame[kDebugFrameFirstLocal] == layout.frame_first_local && frame[kDebugFrameOwner] == layout.frame_owner &&
         code[kDebugCodeFile] == layout.code_file && code[kDebugCodeFunction] == layout.code_function &&
         code[kDebugCodeLineTable] == layout.code_line_table && code[kDebugCodeFirstLine] == layout.code_first_line &&
         code[kDebugCodeBytecode] == layout.code_bytecode;
}

// Whether the field at `address` points to an object that has a type with this flag, and a plausible length.
bool holds(std::uintptr_t address, std::uint64_t type_flag) noexcept {
  std::uintptr_t object = 0, type = 0;
  std::uint64_t flags = 0;
  std::int64_t length = 0;
  static_assert(kStringLength == kObjectSize);
  return safe_load(address, &object) && safe_load(object + kObjectType, &type) &&
         safe_load(type + kTypeFlags, &flags) && (flags & type_flag) != 0 && safe_load(object + kObjectSize, &length) &&
         length >= 0 && length <= kLongestText;
}

bool code_fits(const Layout& layout, const Interpreter& interpreter, std::uintptr_t code) noexcept {
  std::uintptr_t type = 0;
  std::int32_t first_line = -1;
  return safe_load(code + kObjectType, &type) && type == interpreter.code_type &&
         holds(code + layout.code_file, kStringSubclassFlag) &&
         holds(code + layout.code_function, kStringSubclassFlag) &&
         holds(code + layout.code_line_table, kBytesSubclassFlag) &&
         safe_load(code + layout.code_first_line, &first_line) && first_line >= 0;
}

// The instruction must be in the bytecode (prev_instr of 3.11 and 3.12 may be one unit before it).
bool instruction_fits(const Layout& layout, std::uintptr_t frame, std::uintptr_t code) noexcept {
  if (layout.style == FrameStyle::frame_objects) {
    std::int32_t last = 0;
    return safe_load(frame + layout.frame_instruction, &last) && last >= -1;
  }
  std::uintptr_t instruction = 0;
  std::int64_t units = 0;  // ob_size of a code object: its bytecode in units of two bytes
  std::int32_t first_traceable = -1;
  const std::uintptr_t first = code + layout.code_bytecode;
  return safe_load(frame + layout.frame_instruction, &instruction) && safe_load(code + kObjectSize, &units) &&
         safe_load(code + layout.code_first_traceable, &first_traceable) && first_traceable >= 0 &&
         first_traceable < units && instruction + 2 >= first && units > 0 &&
         instruction < first + 2 * static_cast<std::uintptr_t>(units);
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

Verdict verify_layout(const Layout& layout, const Interpreter& interpreter) noexcept {
  const auto thread = reinterpret_cast<std::uintptr_t>(interpreter.this_thread_state());
  if (thread == 0) return Verdict::no_frames;
  std::uintptr_t owner = 0;
  std::int64_t basic_size = 0;
  if (!safe_load(interpreter.code_type + kTypeBasicSize, &basic_size) || basic_size != layout.code_basic_size ||
      !debug_offsets_agree(layout, interpreter.runtime) || !safe_load(thread + layout.thread_interpreter, &owner) ||
      owner != reinterpret_cast<std::uintptr_t>(interpreter.interpreter_of(reinterpret_cast<void*>(thread)))) {
    return Verdict::differs;
  }
  std::uintptr_t frame = 0;
  if (!safe_load(thread + layout.thread_frame, &frame)) return Verdict::differs;
  if (layout.style == FrameStyle::frames_by_cframe && !safe_load(frame + layout.cframe_frame, &frame)) {
    return Verdict::differs;
  }
  unsigned functions = 0;
  for (unsigned checked = 0; frame != 0 && checked < kFramesChecked; ++checked) {
    std::uint8_t frame_owner = 0;
    if (layout.frame_owner != 0 && !safe_load(frame + layout.frame_owner, &frame_owner)) return Verdict::differs;
    if (frame_owner > kLastOwner) return Verdict::differs;
    if (frame_owner < kFirstShimOwner) {
      std::uintptr_t code = 0;
      if (!safe_load(frame + layout.frame_code, &code)) return Verdict::differs;
      code &= ~std::uintptr_t{layout.tag_mask};
      if (!code_fits(layout, interpreter, code) || !instruction_fits(layout, frame, code)) return Verdict::differs;
      ++functions;
    }
    if (!safe_load(frame + layout.frame_previous, &frame)) return Verdict::differs;
  }
  return functions > 0 ? Verdict::fits : Verdict::no_frames;
}

}  // namespace tidemark::process
