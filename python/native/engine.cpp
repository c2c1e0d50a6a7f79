// tidemark._engine: recordings, analyses and tables for python/tidemark/reading, which has the public names and types.
// Handles are capsules. The GIL is released while files are read or results computed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "arrow_data.h"
#include "batch_sizes.h"
#include "copies.h"
#include "export/column_table.h"
#include "launch/environment.h"
#include "module_slots.h"
#include "performance.h"
#include "python_objects.h"
#include "query/analyses/analysis.h"
#include "query/comparison.h"
#include "query/recording.h"
#include "report/common/terminal.h"
#include "report/common/text.h"
#include "report/formats.h"
#include "simulate/simulate.h"
#include "store/symbol_files.h"
#include "store/symbols.h"
#include "watches.h"

namespace tidemark::python {
namespace {

constexpr char kRecording[] = "tidemark.recording";
constexpr char kResult[] = "tidemark.result";
constexpr char kTable[] = "tidemark.table";

using SharedRecording = std::shared_ptr<Recording>;
/// Writes a result in a format.
using Writer = std::function<Result<std::string>(const std::string& format)>;

// Runs without the GIL; an error becomes a TidemarkError.
template <typename Function>
auto computed(const Function& function) {
  auto result = [&] {
    const WithoutGil others_run;
    return function();
  }();
  if (!result) raise_tidemark_error(result.error().message);
  return std::move(*result);
}

const Analysis& find_analysis(const std::string& name) {
  const auto found = std::find_if(analyses().begin(), analyses().end(),
                                  [&](const Analysis& analysis) { return analysis.name == name; });
  if (found == analyses().end()) raise(PyExc_ValueError, "there is no analysis " + name);
  return *found;
}

Object describe(const AnalysisOption& option) {
  Object dict(PyDict_New());
  set_item(dict, "name", text(option.name));
  set_item(dict, "help", text(option.help));
  set_item(dict, "expected", text(option.expected()));
  set_item(dict, "initial", text(option.initial));
  set_item(dict, "is_flag", Object(PyBool_FromLong(option.kind == AnalysisOption::Kind::flag ? 1 : 0)));
  return dict;
}

Object describe(const Analysis& analysis) {
  Object dict(PyDict_New());
  set_item(dict, "name", text(analysis.name));
  set_item(dict, "help", text(analysis.help));
  set_item(dict, "takes_moment", Object(PyBool_FromLong(analysis.takes_moment ? 1 : 0)));
  set_item(dict, "takes_filter", Object(PyBool_FromLong(analysis.takes_filter ? 1 : 0)));
  const Object options(PyList_New(0));
  for (const AnalysisOption& option : analysis.options) append(options, describe(option));
  set_item(dict, "options", options);
  const Object formats(PyList_New(0));
  for (const std::string& format : formats_of(analysis)) append(formats, text(format));
  set_item(dict, "formats", formats);
  return dict;
}

PyObject* list_analyses(PyObject* /*module*/, PyObject* /*none*/) {
  return guarded([] {
    Object list(PyList_New(0));
    for (const Analysis& analysis : analyses()) append(list, describe(analysis));
    return list;
  });
}

// use_program(program): path of the program installed with the package; programs that it starts are beside it. The
// first call in the process counts, because interpreters share it.
PyObject* use_program(PyObject* /*module*/, PyObject* program) {
  return guarded([&] {
    static std::once_flag once;
    const std::string path = bytes_of(program);
    std::call_once(once, [&] { set_own_program(path); });
    return none();
  });
}

// leave_symbol_files_alone(): permanently, for the whole process.
PyObject* leave_symbols(PyObject* /*module*/, PyObject* /*none*/) {
  return guarded([] {
    leave_symbol_files_alone();
    return none();
  });
}

// open(path, with_blocks, rules, progress, python, name): paths are bytes; rules b"" are the built-in ones; name b"" is
// the path in results.
PyObject* open_file(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* path = nullptr;
    PyObject* rules = nullptr;
    PyObject* python = nullptr;
    PyObject* name = nullptr;
    int with_blocks = 1;
    int progress = 1;
    if (PyArg_ParseTuple(arguments, "SpSpSS:open", &path, &with_blocks, &rules, &progress, &python, &name) == 0) {
      throw PythonError();
    }
    const std::string interpreter = bytes_of(python);
    const std::string file_name = bytes_of(name);
    const std::string file = bytes_of(path);
    const std::string rules_file = bytes_of(rules);
    return capsule(kRecording, computed([&]() -> Result<SharedRecording> {
                     auto read = read_rules(rules_file);
                     if (!read) return read.error();
                     ReadingChoice choice{with_blocks != 0, std::move(*read), {}, interpreter, file_name};
                     if (progress != 0) choice.progress = make_progress;
                     return Recording::open(file, std::move(choice));
                   }));
  });
}

std::vector<std::pair<std::string, std::string>> options_of(PyObject* dict) {
  std::vector<std::pair<std::string, std::string>> options;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value) != 0) options.emplace_back(string_of(key), string_of(value));
  return options;
}

AnalysisOptions chosen_options(const AnalysisInfo& analysis, PyObject* dict) {
  const auto given = options_of(dict);
  for (const auto& [name, value] : given) {
    if (!has_option(analysis, name)) raise(PyExc_TypeError, fmt::format("{} has no option {}", analysis.name, name));
  }
  auto options = choose_options(analysis, given);
  if (!options) raise(PyExc_ValueError, options.error().message);
  return std::move(*options);
}

std::vector<SharedRecording> recordings_of(PyObject* list) {
  std::vector<SharedRecording> recordings;
  for (Py_ssize_t index = 0; index < PyList_Size(list); ++index) {
    recordings.push_back(from_capsule<SharedRecording>(PyList_GetItem(list, index), kRecording));
  }
  return recordings;
}

// analyze(name, recordings, options): options are {name: text}.
PyObject* analyze(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* name = nullptr;
    PyObject* list = nullptr;
    PyObject* dict = nullptr;
    if (PyArg_ParseTuple(arguments, "UO!O!:analyze", &name, &PyList_Type, &list, &PyDict_Type, &dict) == 0) {
      throw PythonError();
    }
    const Analysis& analysis = find_analysis(string_of(name));
    const std::vector<SharedRecording> recordings = recordings_of(list);
    AnalysisOptions options = chosen_options(analysis, dict);
    return capsule(kResult, computed([&]() -> Result<Writer> {
                     auto run = run_analysis(analysis, recordings, std::move(options));
                     if (!run) return run.error();
                     return Writer([&analysis, run = *run](const std::string& format) {
                       return write_results(analysis, *run, format, Terminal());
                     });
                   }));
  });
}

// compare(a, b, options): options are {name: text}.
PyObject* compare(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* first = nullptr;
    PyObject* second = nullptr;
    PyObject* dict = nullptr;
    if (PyArg_ParseTuple(arguments, "OOO!:compare", &first, &second, &PyDict_Type, &dict) == 0) throw PythonError();
    const SharedRecording a = from_capsule<SharedRecording>(first, kRecording);
    const SharedRecording b = from_capsule<SharedRecording>(second, kRecording);
    AnalysisInfo info;
    info.name = "compare";
    info.options = compare_options();
    info.takes_filter = true;
    const AnalysisOptions options = chosen_options(info, dict);
    return capsule(kResult, computed([&]() -> Result<Writer> {
                     auto made = compare_recordings(*a, *b, options);
                     if (!made) return made.error();
                     auto comparison = std::make_shared<const Comparison>(std::move(*made));
                     return Writer([comparison](const std::string& format) -> Result<std::string> {
                       return format == "json" ? to_json(*comparison) : to_text(*comparison, Terminal());
                     });
                   }));
  });
}

std::optional<std::string> optional_string(PyObject* object) {
  return object == Py_None ? std::nullopt : std::optional(string_of(object));
}

std::vector<std::string> strings_of(PyObject* list) {
  std::vector<std::string> strings;
  for (Py_ssize_t index = 0; index < PyList_Size(list); ++index)
    strings.push_back(string_of(PyList_GetItem(list, index)));
  return strings;
}

// simulate(recording, sets, search, memory, recorded, device, allocator): memory is a size as text; None: not given.
PyObject* simulate_settings(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* sets = nullptr;
    PyObject* memory = nullptr;
    PyObject* recorded = nullptr;
    PyObject* device = nullptr;
    PyObject* allocator = nullptr;
    int search = 0;
    if (PyArg_ParseTuple(arguments, "OO!pOOOU:simulate", &handle, &PyList_Type, &sets, &search, &memory, &recorded,
                         &device, &allocator) == 0) {
      throw PythonError();
    }
    const SharedRecording recording = from_capsule<SharedRecording>(handle, kRecording);
    SimulateOptions what;
    what.sets = strings_of(sets);
    what.search = search != 0;
    what.recorded = optional_string(recorded);
    what.device = optional_string(device);
    what.python = recording->choice().python;
    if (const auto size = optional_string(memory)) {
      what.memory = parse_size(*size);
      if (!what.memory || *what.memory < kMinSimulatedMemory) {
        raise(PyExc_ValueError,
              fmt::format("memory: invalid value '{}' (expected a size from 20 MiB, such as 24GiB)", *size));
      }
    }
    const std::string name = string_of(allocator);
    if (name != "auto") what.replayer = name == "model" ? Replayer::model : Replayer::pytorch;
    if (name != "auto" && name != "model" && name != "pytorch") {
      raise(PyExc_ValueError,
            fmt::format("allocator: invalid value '{}' (expected one of auto, pytorch, model)", name));
    }
    return capsule(kResult, computed([&]() -> Result<Writer> {
                     const auto store = recording->blocks();
                     if (!store) return store.error();
                     const Symbols symbols((*store)->definitions);
                     auto made = simulate(**store, symbols, what);
                     if (!made) return made.error();
                     auto simulation = std::make_shared<const Simulation>(std::move(*made));
                     return Writer([simulation](const std::string& format) -> Result<std::string> {
                       return format == "json" ? to_json(*simulation) : to_text(*simulation, Terminal());
                     });
                   }));
  });
}

// write(result, format): bytes.
PyObject* write(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* format = nullptr;
    if (PyArg_ParseTuple(arguments, "OU:write", &handle, &format) == 0) throw PythonError();
    const Writer result = from_capsule<Writer>(handle, kResult);
    const std::string wanted = string_of(format);
    const std::string written = computed([&] { return result(wanted); });
    return Object(PyBytes_FromStringAndSize(written.data(), static_cast<Py_ssize_t>(written.size())));
  });
}

Result<SharedTable> make_table(Recording& recording, const std::string& kind, const std::optional<std::string>& at,
                               const std::optional<std::string>& device) {
  const auto store = recording.blocks();
  if (!store) return store.error();
  const auto attribution = recording.attribution();
  if (!attribution) return attribution.error();
  const TableSource source{*store, *attribution};
  if (kind == "events") return std::make_shared<const ColumnTable>(event_table(source));
  if (!at) return std::make_shared<const ColumnTable>(block_table(source));
  const auto moment = find_moment(**store, *at);
  if (!moment) return moment.error();
  const auto devices = select_devices(**store, device);
  if (!devices) return devices.error();
  auto blocks = std::make_shared<std::vector<BlockId>>();
  for (const std::size_t index : *devices) {
    const std::vector<BlockId> held = held_blocks(**store, *moment, index, {}).blocks;
    blocks->insert(blocks->end(), held.begin(), held.end());
  }
  return std::make_shared<const ColumnTable>(block_table(source, std::move(blocks)));
}

// table(recording, kind, at, device): "blocks", at a moment or all, or "events".
PyObject* table(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* kind = nullptr;
    PyObject* at = nullptr;
    PyObject* device = nullptr;
    if (PyArg_ParseTuple(arguments, "OUOO:table", &handle, &kind, &at, &device) == 0) throw PythonError();
    const SharedRecording recording = from_capsule<SharedRecording>(handle, kRecording);
    const std::string wanted = string_of(kind);
    const auto moment = optional_string(at);
    if (moment && !may_be_a_moment(*moment)) raise(PyExc_ValueError, "at: " + parse_moment(*moment).error().message);
    const auto only_device = optional_string(device);
    return capsule(kTable, computed([&] { return make_table(*recording, wanted, moment, only_device); }));
  });
}

// describe_table(table): (number of rows, names of the columns).
PyObject* describe_table(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    const SharedTable& table = from_capsule<SharedTable>(handle, kTable);
    const Object names(PyList_New(0));
    for (const Column& column : table->columns) append(names, text(column.name));
    return Object(Py_BuildValue("(nO)", static_cast<Py_ssize_t>(table->row_count), names.get()));
  });
}

Object cell(const Column& column, std::size_t row) {
  const auto value = column.value(row);
  if (!value) return none();
  if (column.kind == Column::Kind::text) return text(column.words()[*value]);
  return Object(column.kind == Column::Kind::address ? PyLong_FromUnsignedLongLong(*value)
                                                     : PyLong_FromLongLong(static_cast<std::int64_t>(*value)));
}

// rows(table, begin, end): a list of lists.
PyObject* rows(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    Py_ssize_t begin = 0;
    Py_ssize_t end = 0;
    if (PyArg_ParseTuple(arguments, "Onn:rows", &handle, &begin, &end) == 0) throw PythonError();
    const SharedTable& table = from_capsule<SharedTable>(handle, kTable);
    if (begin < 0 || end < begin || static_cast<std::size_t>(end) > table->row_count) {
      raise(PyExc_IndexError, "no such row");
    }
    {
      const WithoutGil others_run;
      for (const Column& column : table->columns) {
        if (begin != end && column.words) static_cast<void>(column.words());
      }
    }
    Object list(PyList_New(0));
    for (Py_ssize_t row = begin; row < end; ++row) {
      const Object cells(PyList_New(0));
      for (const Column& column : table->columns) append(cells, cell(column, static_cast<std::size_t>(row)));
      append(list, cells);
    }
    return list;
  });
}

// A capsule defined by the interface: data not taken by its consumer is released with it.
template <typename Arrow>
Object arrow_capsule(const char* name, std::unique_ptr<Arrow> filled) {
  const auto destroy = [](PyObject* self) {
    std::unique_ptr<Arrow> owned(static_cast<Arrow*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))));
    if (owned && owned->release != nullptr) owned->release(owned.get());
  };
  PyObject* const made = PyCapsule_New(filled.get(), name, destroy);
  if (made == nullptr) filled->release(filled.get());
  Object capsule(made);
  filled.release();
  return capsule;
}

PyObject* arrow_schema(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    auto schema = std::make_unique<ArrowSchema>();
    fill_schema(*from_capsule<SharedTable>(handle, kTable), schema.get());
    return arrow_capsule("arrow_schema", std::move(schema));
  });
}

// arrow_array(table): all rows.
PyObject* arrow_array(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    const SharedTable table = from_capsule<SharedTable>(handle, kTable);
    auto array = std::make_unique<ArrowArray>();
    {
      const WithoutGil others_run;
      fill_array(table, 0, table->row_count, array.get());
    }
    return arrow_capsule("arrow_array", std::move(array));
  });
}

// arrow_stream(table, rows_in_batch): 0 is the default.
PyObject* arrow_stream(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    Py_ssize_t rows_in_batch = 0;
    if (PyArg_ParseTuple(arguments, "On:arrow_stream", &handle, &rows_in_batch) == 0) throw PythonError();
    auto stream = std::make_unique<ArrowArrayStream>();
    fill_stream(from_capsule<SharedTable>(handle, kTable),
                rows_in_batch > 0 ? static_cast<std::size_t>(rows_in_batch) : kRowsInBatch, stream.get());
    return arrow_capsule("arrow_array_stream", std::move(stream));
  });
}

// METH_FASTCALL, which the limited API declares from 3.10 on; see recorder.cpp.
constexpr int kFastCall = 0x0080;
using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);

PyCFunction fast(FastFunction function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef kMethods[] = {
    {"analyses", list_analyses, METH_NOARGS, nullptr},
    {"use_program", use_program, METH_O, nullptr},
    {"leave_symbol_files_alone", leave_symbols, METH_NOARGS, nullptr},
    {"open", open_file, METH_VARARGS, nullptr},
    {"analyze", analyze, METH_VARARGS, nullptr},
    {"compare", compare, METH_VARARGS, nullptr},
    {"simulate", simulate_settings, METH_VARARGS, nullptr},
    {"write", write, METH_VARARGS, nullptr},
    {"table", table, METH_VARARGS, nullptr},
    {"describe_table", describe_table, METH_O, nullptr},
    {"rows", rows, METH_VARARGS, nullptr},
    {"arrow_schema", arrow_schema, METH_O, nullptr},
    {"arrow_array", arrow_array, METH_O, nullptr},
    {"arrow_stream", arrow_stream, METH_VARARGS, nullptr},
    {"watch_machine", watch_machine, METH_VARARGS, nullptr},
    {"start_watching", start_watching, METH_O, nullptr},
    {"stop_watching", stop_watching, METH_O, nullptr},
    {"is_watching", is_watching, METH_O, nullptr},
    {"risk_changes", risk_changes, METH_O, nullptr},
    {"watch_report", watch_report, METH_VARARGS, nullptr},
    {"performance_monitor", performance_monitor, METH_VARARGS, nullptr},
    {"start_performance", start_performance, METH_O, nullptr},
    {"stop_performance", stop_performance, METH_O, nullptr},
    {"is_performance_watched", is_performance_watched, METH_O, nullptr},
    {"log_metric", fast(log_metric), kFastCall, nullptr},
    {"end_step", fast(end_step), kFastCall, nullptr},
    {"begin_part", begin_part, METH_O, nullptr},
    {"end_part", fast(end_part), kFastCall, nullptr},
    {"performance_report", performance_report, METH_O, nullptr},
    {"performance_page", performance_page, METH_VARARGS, nullptr},
    {"performance_chart", performance_chart, METH_VARARGS, nullptr},
    {"host_to_device", host_to_device, METH_VARARGS, nullptr},
    {"copy_to_device", copy_to_device, METH_VARARGS, nullptr},
    {"convert_on_device", convert_on_device, METH_VARARGS, nullptr},
    {"copy_stream", copy_stream, METH_O, nullptr},
    {"pinned_bytes", pinned_bytes, METH_O, nullptr},
    {"batch_search", batch_search, METH_VARARGS, nullptr},
    {"next_batch", next_batch, METH_O, nullptr},
    {"report_batch", report_batch, METH_VARARGS, nullptr},
    {"suppose_batch", suppose_batch, METH_VARARGS, nullptr},
    {"batch_result", batch_result, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "tidemark._engine",
                       "The engine that reads recordings.",
                       0,
                       kMethods,
                       slots_for(nullptr),
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace tidemark::python

PyMODINIT_FUNC PyInit__engine() {
  return PyModuleDef_Init(&tidemark::python::kModule);
}
