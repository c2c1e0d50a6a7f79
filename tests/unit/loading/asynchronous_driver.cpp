#include "unit/loading/asynchronous_driver.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "loading/element_conversion.h"

namespace tidemark::test {
namespace {

constexpr cuda::Status kInvalidValue = 1;
constexpr cuda::Status kOutOfMemory = 2;
constexpr cuda::Status kInvalidHandle = 400;
constexpr cuda::Status kNotFound = 500;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

class Stream {
 public:
  Stream() : thread_([this] { run(); }) {}
  ~Stream() {
    put(nullptr);
    thread_.join();
  }
  void put(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_.empty() && !busy_; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !work_.empty(); });
      const auto work = std::move(work_.front());
      work_.pop_front();
      if (!work) return;
      busy_ = true;
      lock.unlock();
      for (int turn = 0; turn < 20; ++turn) std::this_thread::yield();  // others come first
      work();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false;
  std::thread thread_;
};

/// Counts how often it was recorded, and how many of these moments the streams have reached.
struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;

  std::uint64_t last() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
  void wait(std::uint64_t moment) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= moment; });
  }
};

/// A module's text, and its requested kernels.
struct Module {
  std::string text;
  std::map<std::string, ElementConversion> kernels;
};

struct Machine {
  std::mutex mutex;
  std::set<void*> pinned;
  std::set<void*> device;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Module*> modules;
  Stream standard;  ///< the default stream
  std::atomic<std::size_t> allocations = kUnlimited;
  std::atomic<std::size_t> copies = kUnlimited;
  int context = 0;
};
std::unique_ptr<Machine> machine;
thread_local cuda::Context current = nullptr;

bool take_one(std::atomic<std::size_t>& left) {
  std::size_t had = left.load();
  while (had != 0 && !left.compare_exchange_weak(had, had == kUnlimited ? had : had - 1)) {
  }
  return had != 0;
}

Stream& of(cuda::Stream stream) {
  return stream == nullptr ? machine->standard : *static_cast<Stream*>(stream);
}

template <typename Object>
bool forget(std::set<Object*>& all, void* object) {
  const std::lock_guard lock(machine->mutex);
  return all.erase(static_cast<Object*>(object)) == 1;
}

cuda::Status host_alloc(void** address, std::size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  const std::lock_guard lock(machine->mutex);
  machine->pinned.insert(*address);
  return cuda::kSuccess;
}
cuda::Status host_free(void* address) {
  if (!forget(machine->pinned, address)) return kInvalidValue;
  std::free(address);
  return cuda::kSuccess;
}
cuda::Status alloc(cuda::DevicePointer* address, std::size_t bytes) {
  if (current == nullptr) return kInvalidHandle;
  if (!take_one(machine->allocations)) return kOutOfMemory;
  void* const memory = std::malloc(bytes);
  *address = reinterpret_cast<cuda::DevicePointer>(memory);
  const std::lock_guard lock(machine->mutex);
  machine->device.insert(memory);
  return cuda::kSuccess;
}
cuda::Status free_device(cuda::DevicePointer address) {
  void* const memory = reinterpret_cast<void*>(address);
  if (!forget(machine->device, memory)) return kInvalidValue;
  std::free(memory);
  return cuda::kSuccess;
}
/// Creates an object and returns its handle.
template <typename Object>
cuda::Status create(std::set<Object*>& all, void** handle) {
  auto* made = new Object;
  *handle = made;
  const std::lock_guard lock(machine->mutex);
  all.insert(made);
  return cuda::kSuccess;
}
cuda::Status create_stream(cuda::Stream* stream, unsigned) {
  return create(machine->streams, stream);
}
cuda::Status destroy_stream(cuda::Stream stream) {
  if (!forget(machine->streams, stream)) return kInvalidHandle;
  of(stream).wait();
  delete static_cast<Stream*>(stream);
  return cuda::kSuccess;
}
cuda::Status create_event(cuda::Event* event, unsigned) {
  return create(machine->events, event);
}
cuda::Status destroy_event(cuda::Event event) {
  if (!forget(machine->events, event)) return kInvalidHandle;
  delete static_cast<Event*>(event);
  return cuda::kSuccess;
}
cuda::Status record_event(cuda::Event event, cuda::Stream stream) {
  if (current == nullptr) return kInvalidHandle;
  auto& recorded = *static_cast<Event*>(event);
  {
    const std::lock_guard lock(recorded.mutex);
    ++recorded.recorded;
  }
  of(stream).put([&recorded, moment = recorded.last()] {
    const std::lock_guard lock(recorded.mutex);
    recorded.reached = moment;
    recorded.changed.notify_all();
  });
  return cuda::kSuccess;
}
cuda::Status wait_event(cuda::Stream stream, cuda::Event event, unsigned) {
  auto& awaited = *static_cast<Event*>(event);
  of(stream).put([&awaited, moment = awaited.last()] { awaited.wait(moment); });
  return cuda::kSuccess;
}
cuda::Status synchronize_event(cuda::Event event) {
  auto& awaited = *static_cast<Event*>(event);
  awaited.wait(awaited.last());
  return cuda::kSuccess;
}
cuda::Status copy(cuda::DevicePointer to, const void* from, std::size_t bytes, cuda::Stream stream) {
  if (current == nullptr) return kInvalidHandle;
  if (!take_one(machine->copies)) return kOutOfMemory;
  of(stream).put([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return cuda::kSuccess;
}
cuda::Status load_module(cuda::Module* module, const void* image) {
  if (current == nullptr) return kInvalidHandle;
  if (const auto made = create(machine->modules, module); made != cuda::kSuccess) return made;
  static_cast<Module*>(*module)->text = static_cast<const char*>(image);
  return cuda::kSuccess;
}
cuda::Status unload_module(cuda::Module module) {
  if (!forget(machine->modules, module)) return kInvalidHandle;
  delete static_cast<Module*>(module);
  return cuda::kSuccess;
}
/// The types of elements are read from the kernel's name: tidemark_uint8_to_float16.
cuda::Status find_function(cuda::Function* function, cuda::Module module, const char* name) {
  Module& in = *static_cast<Module*>(module);
  const std::string wanted = name;
  if (in.text.find(".entry " + wanted + "(") == std::string::npos) return kNotFound;
  ElementConversion& kernel = in.kernels[wanted];
  kernel.from = wanted.starts_with("tidemark_uint8_") ? ElementType::uint8 : ElementType::float32;
  kernel.to = wanted.ends_with("_bfloat16")  ? ElementType::bfloat16
              : wanted.ends_with("_float16") ? ElementType::float16
                                             : ElementType::float32;
  *function = &kernel;
  return cuda::kSuccess;
}
cuda::Status launch_kernel(cuda::Function function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                           unsigned, unsigned, cuda::Stream stream, void** parameters, void**) {
  if (current == nullptr) return kInvalidHandle;
  ElementConversion conversion = *static_cast<const ElementConversion*>(function);
  const auto to = *static_cast<const std::uint64_t*>(parameters[0]);
  const auto from = *static_cast<const std::uint64_t*>(parameters[1]);
  const auto count = std::min(*static_cast<const std::uint64_t*>(parameters[2]), std::uint64_t{blocks} * threads);
  conversion.scale = *static_cast<const float*>(parameters[3]);
  conversion.offset = *static_cast<const float*>(parameters[4]);
  of(stream).put([=] {
    convert(conversion, {reinterpret_cast<const std::byte*>(from), count * element_bytes(conversion.from)},
            reinterpret_cast<std::byte*>(to));
  });
  return cuda::kSuccess;
}
cuda::Status error_name(cuda::Status status, const char** name) {
  *name = status == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_VALUE";
  return cuda::kSuccess;
}

}  // namespace

AsynchronousDriver::AsynchronousDriver() {
  machine = std::make_unique<Machine>();
  driver_.device = [](int* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? cuda::kSuccess : 101;
  };
  driver_.retain_primary_context = [](cuda::Context* context, int) {
    *context = &machine->context;
    return cuda::kSuccess;
  };
  driver_.release_primary_context = [](int) { return cuda::kSuccess; };
  driver_.current_context = [](cuda::Context* context) {
    *context = current;
    return cuda::kSuccess;
  };
  driver_.set_current_context = [](cuda::Context context) {
    current = context;
    return cuda::kSuccess;
  };
  driver_.host_alloc = host_alloc;
  driver_.host_free = host_free;
  driver_.alloc = alloc;
  driver_.free = free_device;
  driver_.create_stream = create_stream;
  driver_.destroy_stream = destroy_stream;
  driver_.synchronize_stream = [](cuda::Stream stream) {
    of(stream).wait();
    return cuda::kSuccess;
  };
  driver_.stream_wait_event = wait_event;
  driver_.create_event = create_event;
  driver_.destroy_event = destroy_event;
  driver_.record_event = record_event;
  driver_.synchronize_event = synchronize_event;
  driver_.copy_to_device = copy;
  driver_.load_module = load_module;
  driver_.unload_module = unload_module;
  driver_.find_function = find_function;
  driver_.launch = launch_kernel;
  driver_.error_name = error_name;
}

AsynchronousDriver::~AsynchronousDriver() {
  for (Stream* stream : machine->streams) delete stream;
  machine.reset();
}

void AsynchronousDriver::launch(cuda::Stream stream, std::function<void()> work) {
  of(stream).put(std::move(work));
}

cuda::Stream AsynchronousDriver::make_stream() {
  cuda::Stream stream = nullptr;
  create_stream(&stream, 0);
  return stream;
}

void AsynchronousDriver::synchronize(cuda::Stream stream) {
  of(stream).wait();
}

std::size_t AsynchronousDriver::objects() const {
  const std::lock_guard lock(machine->mutex);
  return machine->pinned.size() + machine->device.size() + machine->streams.size() + machine->events.size() +
         machine->modules.size();
}

void AsynchronousDriver::allocations_left(std::size_t count) {
  machine->allocations = count;
}

void AsynchronousDriver::copies_left(std::size_t count) {
  machine->copies = count;
}

}  // namespace tidemark::test
