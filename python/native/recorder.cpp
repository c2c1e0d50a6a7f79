// tidemark._recorder: the parts of recording from inside that must be fast, or must call the recording library.
//
// mark(), step() and range() cost some ten nanoseconds without a recording, so they can stay in a program. The library
// is either in the program from its start (`tidemark run` preloads it), so its functions are found among the program's
// own, or load() loads it. Nothing here links it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <mutex>

#include "inprocess/recording/control_library.h"
#include "module_slots.h"

namespace {

// The functions in this process, shared by its interpreters; null if the library is not loaded.
const tidemark::ControlFunctions* library() {
  return tidemark::control_library();
}

// Calls with the UTF-8 of a str; false with a Python error. (3.9's limited API cannot lend it.)
bool call_with_text(void (*function)(const char*), PyObject* text) {
  PyObject* bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
  if (bytes == nullptr) return false;
  const char* characters = PyBytes_AsString(bytes);
  if (characters != nullptr) function(characters);
  Py_DecRef(bytes);
  return characters != nullptr;
}

bool is_name(PyObject* name) {
  if (PyUnicode_Check(name)) return true;
  PyErr_SetString(PyExc_TypeError, "the name has to be a str");
  return false;
}

PyObject* mark(PyObject* /*module*/, PyObject* name) {
  if (!is_name(name)) return nullptr;
  if (library() != nullptr && !call_with_text(library()->mark, name)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* pause(PyObject* /*module*/, PyObject* /*none*/) {
  if (library() != nullptr) library()->pause();
  Py_RETURN_NONE;
}

PyObject* resume(PyObject* /*module*/, PyObject* /*none*/) {
  if (library() != nullptr) library()->resume();
  Py_RETURN_NONE;
}

PyObject* is_recording(PyObject* /*module*/, PyObject* /*none*/) {
  return PyBool_FromLong(library() != nullptr ? library()->is_recording() : 0);
}

// ---- ranges ----

struct Range {
  PyObject head;
  PyObject* name;
};

// One for each interpreter that imports the module.
struct State {
  PyTypeObject* range_type;
  PyObject* step_range;  // one for all steps
};

State& state_of(PyObject* module) {
  return *static_cast<State*>(PyModule_GetState(module));
}

PyObject* name_of(PyObject* range) {
  return reinterpret_cast<Range*>(range)->name;
}

// Ranges come from range() and step().
PyObject* range_new(PyTypeObject* /*type*/, PyObject* /*arguments*/, PyObject* /*keywords*/) {
  PyErr_SetString(PyExc_TypeError, "use tidemark.range(name)");
  return nullptr;
}

void range_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DecRef(name_of(self));
  PyObject_Free(self);
  Py_DecRef(reinterpret_cast<PyObject*>(type));
}

PyObject* range_enter(PyObject* self, PyObject* /*none*/) {
  if (library() != nullptr) {
    library()->answer();
    if (!call_with_text(library()->range_begin, name_of(self))) return nullptr;
  }
  Py_IncRef(self);
  return self;
}

PyObject* range_exit(PyObject* self, PyObject* const* /*error*/, Py_ssize_t /*count*/) {
  if (library() != nullptr && !call_with_text(library()->range_end, name_of(self))) return nullptr;
  Py_RETURN_FALSE;
}

// As a decorator; functions are wrapped in Python.
PyObject* range_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* module = PyImport_ImportModule("tidemark.recording.decorator");
  PyObject* decorator = module != nullptr ? PyObject_CallMethod(module, "decorator", "O", self) : nullptr;
  PyObject* result = decorator != nullptr ? PyObject_Call(decorator, arguments, keywords) : nullptr;
  Py_XDECREF(decorator);
  Py_XDECREF(module);
  return result;
}

PyObject* range(PyObject* module, PyObject* name) {
  if (!is_name(name)) return nullptr;
  Range* made = PyObject_New(Range, state_of(module).range_type);
  if (made == nullptr) return nullptr;
  Py_IncRef(name);
  made->name = name;
  return reinterpret_cast<PyObject*>(made);
}

PyObject* step(PyObject* module, PyObject* /*none*/) {
  PyObject* step_range = state_of(module).step_range;
  Py_IncRef(step_range);
  return step_range;
}

// ---- for tidemark.recording ----

PyObject* load(PyObject* /*module*/, PyObject* path) {
  if (library() != nullptr) Py_RETURN_NONE;
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path, &bytes) == 0) return nullptr;
  void* handle = dlopen(PyBytes_AsString(bytes), RTLD_NOW | RTLD_LOCAL);
  Py_DecRef(bytes);
  if (handle != nullptr && tidemark::find_control_library(handle)) Py_RETURN_NONE;
  const char* why = dlerror();
  PyErr_SetString(PyExc_OSError, why != nullptr ? why : "it is not the library of this version of Tidemark");
  return nullptr;
}

PyObject* loaded(PyObject* /*module*/, PyObject* /*none*/) {
  return PyBool_FromLong(library() != nullptr ? 1 : 0);
}

PyObject* connect(PyObject* /*module*/, PyObject* settings) {
  constexpr Py_ssize_t kMax = 64;
  const char* lines[kMax + 1] = {};
  const Py_ssize_t count = PyList_Size(settings);
  if (count < 0) return nullptr;
  if (count > kMax) {
    PyErr_SetString(PyExc_ValueError, "too many settings");
    return nullptr;
  }
  for (Py_ssize_t index = 0; index < count; ++index) {
    lines[index] = PyBytes_AsString(PyList_GetItem(settings, index));
    if (lines[index] == nullptr) return nullptr;
  }
  return PyBool_FromLong(library() != nullptr ? library()->connect(lines) : 0);
}

PyObject* disconnect(PyObject* /*module*/, PyObject* /*none*/) {
  int ended = 0;
  Py_BEGIN_ALLOW_THREADS;  // it waits for threads that are recording, which may need the GIL
  if (library() != nullptr) ended = library()->disconnect();
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(ended);
}

PyObject* attach(PyObject* /*module*/, PyObject* /*none*/) {
  return PyLong_FromSize_t(library() != nullptr ? library()->attach() : 0);
}

PyObject* name_file(PyObject* /*module*/, PyObject* arguments) {
  const char* path = nullptr;
  const char* name = nullptr;
  if (PyArg_ParseTuple(arguments, "ss", &path, &name) == 0) return nullptr;
  if (library() != nullptr) library()->name_file(path, name);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"mark", mark, METH_O,
     "mark(name, /)\n--\n\nName this moment, such as \"epoch 1\" (at most 256 bytes of UTF-8); nothing where nothing "
     "records.\n\nReports show memory at it: ``tidemark summary run.tide --at \"epoch 1\"``."},
    {"pause", pause, METH_NOARGS,
     "pause()\n--\n\nStop recording what is allocated and freed, until ``resume()``; nothing where nothing records.\n\n"
     "Reports say for how long. Calls do not nest."},
    {"resume", resume, METH_NOARGS,
     "resume()\n--\n\nContinue what ``pause()`` stopped; nothing where nothing records."},
    {"step", step, METH_NOARGS,
     "step()\n--\n\nA context manager around one step of a training loop, or a decorator of a function that is one.\n\n"
     "Nothing where nothing records. ``tidemark leaks`` takes its steps from it."},
    {"range", range, METH_O,
     "range(name, /)\n--\n\nA context manager that names a range of time, such as \"evaluation\" (at most 256 bytes of "
     "UTF-8).\n\nAlso a decorator of a function. Ranges nest. Nothing where nothing records. Reports group memory by "
     "it:\n"
     "``tidemark table run.tide --by annotation``."},
    {"is_recording", is_recording, METH_NOARGS,
     "is_recording()\n--\n\nWhether this process is being recorded, by ``start()`` or by ``tidemark run``; also while "
     "it "
     "is paused."},
    {"load", load, METH_O, "load(path, /)\n--\n\nLoad the library that records, unless it is there. Raises OSError."},
    {"loaded", loaded, METH_NOARGS, "loaded()\n--\n\nWhether the library that records is in this process."},
    {"connect", connect, METH_O,
     "connect(settings, /)\n--\n\nStart recording; settings are b\"NAME=value\". False where it cannot."},
    {"disconnect", disconnect, METH_NOARGS, "disconnect()\n--\n\nEnd the recording. False where there was none."},
    {"attach", attach, METH_NOARGS,
     "attach()\n--\n\nHave the libraries that are loaded by now report what they allocate; how many import slots do."},
    {"name_file", name_file, METH_VARARGS,
     "name_file(path, name, /)\n--\n\nHave recordings show a source file under another name, of ASCII."},
    {nullptr, nullptr, 0, nullptr}};

// METH_FASTCALL: the limited API declares it from 3.10 on, CPython has it from 3.7 on. Without it each step makes a
// tuple.
constexpr int kFastCall = 0x0080;

PyMethodDef range_methods[] = {
    {"__enter__", range_enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(range_exit)), kFastCall, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot range_slots[] = {{Py_tp_doc, const_cast<char*>("A range of time with a name; see tidemark.range().")},
                             {Py_tp_new, reinterpret_cast<void*>(range_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(range_dealloc)},
                             {Py_tp_call, reinterpret_cast<void*>(range_call)},
                             {Py_tp_methods, range_methods},
                             {0, nullptr}};
PyType_Spec range_spec = {"tidemark._recorder.Range", sizeof(Range), 0, Py_TPFLAGS_DEFAULT, range_slots};

int fill(PyObject* module) {
  State& state = state_of(module);
  state.range_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&range_spec));
  if (state.range_type == nullptr) return -1;
  PyObject* name = PyUnicode_InternFromString("step");
  if (name == nullptr) return -1;
  state.step_range = range(module, name);
  Py_DecRef(name);
  if (state.step_range == nullptr) return -1;
  tidemark::find_control_library(RTLD_DEFAULT);
  return 0;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
  Py_VISIT(state_of(module).range_type);
  Py_VISIT(state_of(module).step_range);
  return 0;
}

int clear(PyObject* module) {
  Py_CLEAR(state_of(module).step_range);
  Py_CLEAR(state_of(module).range_type);
  return 0;
}

void release(void* module) {
  clear(static_cast<PyObject*>(module));
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "tidemark._recorder",
                          nullptr,
                          sizeof(State),
                          methods,
                          tidemark::python::slots_for(fill),
                          traverse,
                          clear,
                          release};

}  // namespace

PyMODINIT_FUNC PyInit__recorder() {
  return PyModuleDef_Init(&definition);
}
