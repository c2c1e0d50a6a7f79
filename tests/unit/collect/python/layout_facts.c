#define Py_BUILD_CORE 1
#include "layout_facts.h"

#include <Python.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_debug_offsets.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#endif
#include <string.h>

static size_t state_bits(unsigned kind, unsigned compact, unsigned ascii) {
  PyASCIIObject text;
  unsigned bits;
  memset(&text, 0, sizeof text);
  text.state.kind = kind & 7;
  text.state.compact = compact & 1;
  text.state.ascii = ascii & 1;
  memcpy(&bits, &text.state, sizeof bits);
  return bits;
}

#define FIELD(name, type, field) \
  { name, offsetof(type, field) }
#define WORD(name, group, field) \
  { name, (offsetof(_Py_DebugOffsets, group.field) - offsetof(_Py_DebugOffsets, group)) / 8 }

size_t layout_facts(struct LayoutFact* facts, size_t capacity) {
  const struct LayoutFact all[] = {
    {"version", PY_VERSION_HEX >> 16},
    FIELD("thread_interpreter", PyThreadState, interp),
#if PY_VERSION_HEX < 0x030b0000
    FIELD("thread_frame", PyThreadState, frame),
    FIELD("frame_previous", PyFrameObject, f_back),
    FIELD("frame_code", PyFrameObject, f_code),
    FIELD("frame_instruction", PyFrameObject, f_lasti),
    FIELD("frame_first_local", PyFrameObject, f_localsplus),
    FIELD("code_function", PyCodeObject, co_name),
    FIELD("code_cells", PyCodeObject, co_cellvars),
    {"code_basic_size", sizeof(PyCodeObject)},
#else
    FIELD("frame_previous", _PyInterpreterFrame, previous),
    FIELD("frame_owner", _PyInterpreterFrame, owner),
    FIELD("frame_first_local", _PyInterpreterFrame, localsplus),
    FIELD("code_function", PyCodeObject, co_qualname),
    FIELD("code_cells", PyCodeObject, co_ncellvars),
    FIELD("code_first_traceable", PyCodeObject, _co_firsttraceable),
    FIELD("code_bytecode", PyCodeObject, co_code_adaptive),
    FIELD("code_basic_size", PyCodeObject, co_code_adaptive),
    {"owned_by_generator", FRAME_OWNED_BY_GENERATOR},
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
    FIELD("thread_frame", PyThreadState, cframe),
    FIELD("cframe_frame", _PyCFrame, current_frame),
    FIELD("frame_code", _PyInterpreterFrame, f_code),
    FIELD("frame_instruction", _PyInterpreterFrame, prev_instr),
#endif
#if PY_VERSION_HEX >= 0x030d0000
    FIELD("thread_frame", PyThreadState, current_frame),
    FIELD("frame_code", _PyInterpreterFrame, f_executable),
    FIELD("frame_instruction", _PyInterpreterFrame, instr_ptr),
    {"debug_thread", offsetof(_Py_DebugOffsets, thread_state) / 8},
    {"debug_frame", offsetof(_Py_DebugOffsets, interpreter_frame) / 8},
    {"debug_code", offsetof(_Py_DebugOffsets, code_object) / 8},
    {"debug_version", offsetof(_Py_DebugOffsets, version) / 8},
    {"debug_free_threaded", offsetof(_Py_DebugOffsets, free_threaded) / 8},
    WORD("debug_thread_interpreter", thread_state, interp),
    WORD("debug_thread_frame", thread_state, current_frame),
    WORD("debug_frame_previous", interpreter_frame, previous),
    WORD("debug_frame_code", interpreter_frame, executable),
    WORD("debug_frame_instruction", interpreter_frame, instr_ptr),
    WORD("debug_frame_first_local", interpreter_frame, localsplus),
    WORD("debug_frame_owner", interpreter_frame, owner),
    WORD("debug_code_file", code_object, filename),
    WORD("debug_code_function", code_object, qualname),
    WORD("debug_code_line_table", code_object, linetable),
    WORD("debug_code_first_line", code_object, firstlineno),
    WORD("debug_code_bytecode", code_object, co_code_adaptive),
#endif
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
    {"first_shim_owner", FRAME_OWNED_BY_CSTACK},
#endif
#if PY_VERSION_HEX >= 0x030e0000
    {"first_shim_owner", FRAME_OWNED_BY_INTERPRETER},
    {"last_owner", FRAME_OWNED_BY_CSTACK},
    {"tag_mask", Py_TAG_BITS},
#endif
#if PY_VERSION_HEX < 0x030a0000
    FIELD("code_line_table", PyCodeObject, co_lnotab),
#else
    FIELD("code_line_table", PyCodeObject, co_linetable),
#endif
    FIELD("code_file", PyCodeObject, co_filename),
    FIELD("code_first_line", PyCodeObject, co_firstlineno),
    {"ascii_string_size", sizeof(PyASCIIObject)},
    {"compact_string_size", sizeof(PyCompactUnicodeObject)},
    FIELD("compact_string_size", PyUnicodeObject, data),
    FIELD("object_type", PyObject, ob_type),
    FIELD("object_size", PyVarObject, ob_size),
    FIELD("type_basic_size", PyTypeObject, tp_basicsize),
    FIELD("type_dealloc", PyTypeObject, tp_dealloc),
    FIELD("type_flags", PyTypeObject, tp_flags),
    FIELD("string_length", PyASCIIObject, length),
    FIELD("string_state", PyASCIIObject, state),
    FIELD("bytes_data", PyBytesObject, ob_sval),
    {"state_kind_1", state_bits(1, 0, 0)},
    {"state_kind_4", state_bits(4, 0, 0)},
    {"state_compact", state_bits(0, 1, 0)},
    {"state_ascii", state_bits(0, 0, 1)},
    {"bytes_subclass_flag", Py_TPFLAGS_BYTES_SUBCLASS},
    {"string_subclass_flag", Py_TPFLAGS_UNICODE_SUBCLASS},
  };
  const size_t count = sizeof all / sizeof all[0];
  for (size_t index = 0; index < count && index < capacity; ++index) facts[index] = all[index];
  return count;
}
