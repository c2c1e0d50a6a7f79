#include "shapes.h"

#include <alloca.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>

namespace tidemark::process {
namespace {

// Prevents a call from being a tail call, and a buffer from being removed.
void keep(void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

[[gnu::noinline]] void plain(Visit visit, void* argument) {
  visit(argument);
  keep(argument);
}

[[gnu::noinline]] void recurse(int depth, Visit visit, void* argument) {
  char local[40];
  keep(local);
  if (depth == 0) {
    visit(argument);
  } else {
    recurse(depth - 1, visit, argument);
  }
  keep(local);
}

void deep_recursion(Visit visit, void* argument) {
  recurse(200, visit, argument);
}

[[gnu::noinline]] void large_frame(Visit visit, void* argument) {
  char local[1 << 20];
  keep(local);
  visit(argument);
  keep(local);
}

[[gnu::noinline]] void allocated_on_stack(std::size_t size, Visit visit, void* argument) {
  void* memory = alloca(size);
  std::memset(memory, 1, size);
  keep(memory);
  visit(argument);
  keep(memory);
}

void variable_frames(Visit visit, void* argument) {
  allocated_on_stack(17 + (reinterpret_cast<std::size_t>(argument) & 1), visit, argument);
}

[[gnu::noinline]] void aligned_locals(Visit visit, void* argument) {
  alignas(64) char local[64];
  keep(local);
  visit(argument);
  keep(local);
}

[[gnu::noinline]] void aligned_variable(std::size_t size, Visit visit, void* argument) {
  alignas(128) char local[128];
  void* memory = alloca(size);
  keep(local);
  keep(memory);
  visit(argument);
  keep(memory);
  keep(local);
}

void realigned_variable_frames(Visit visit, void* argument) {
  aligned_variable(100 + (reinterpret_cast<std::size_t>(argument) & 1), visit, argument);
}

// Many live values across the call, so that every callee-saved register, including rbp, is used.
[[gnu::noinline]] long many_registers(long a, long b, long c, long d, long e, long f, Visit visit, void* argument) {
  long g = a * b, h = c * d, i = e * f, j = a * c;
  asm volatile("" : "+r"(g), "+r"(h), "+r"(i), "+r"(j));
  visit(argument);
  asm volatile("" : "+r"(g), "+r"(h), "+r"(i), "+r"(j));
  return a + b + c + d + e + f + g * h + i * j;
}

void registers(Visit visit, void* argument) {
  long result = many_registers(1, 2, 3, 4, 5, 6, visit, argument);
  keep(&result);
}

[[gnu::noinline]] void variadic(Visit visit, void* argument, int count, ...) {
  va_list arguments;
  va_start(arguments, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(arguments, double);
  keep(&sum);
  visit(argument);
  va_end(arguments);
}

void variable_arguments(Visit visit, void* argument) {
  variadic(visit, argument, 3, 1.0, 2.0, 3.0);
}

struct Call {
  Visit visit;
  void* argument;
};
thread_local Call pending;

int compare(const void* a, const void* b) {
  if (pending.visit != nullptr) {
    const Call call = pending;
    pending.visit = nullptr;
    call.visit(call.argument);
  }
  return std::memcmp(a, b, sizeof(int));
}

void inside_qsort(Visit visit, void* argument) {
  int values[50];
  for (int i = 0; i < 50; ++i) values[i] = i * 7 % 50;
  pending = {visit, argument};
  std::qsort(values, 50, sizeof(int), compare);
}

void inside_bsearch(Visit visit, void* argument) {
  const int values[] = {1, 2, 3, 4, 5};
  pending = {visit, argument};
  keep(std::bsearch(&values[3], values, 5, sizeof(int), compare));
}

void inside_lambda(Visit visit, void* argument) {
  const std::function<void(int)> function = [=](int depth) {
    auto inner = [&] { recurse(depth, visit, argument); };
    inner();
    keep(&inner);
  };
  function(3);
}

struct VisitOnExit {
  Visit visit;
  void* argument;
  ~VisitOnExit() { visit(argument); }
};

[[gnu::noinline]] void thrower(Visit visit, void* argument) {
  const VisitOnExit guard{visit, argument};
  throw std::runtime_error("in flight");
}

void exception_in_flight(Visit visit, void* argument) {
  try {
    thrower(visit, argument);
  } catch (const std::runtime_error&) {
    keep(argument);
  }
}

void inside_catch(Visit visit, void* argument) {
  try {
    throw std::runtime_error("caught");
  } catch (const std::runtime_error&) {
    visit(argument);
  }
}

constexpr Shape kShapes[] = {{"plain", plain},
                             {"deep_recursion", deep_recursion},
                             {"large_frame", large_frame},
                             {"variable_frames", variable_frames},
                             {"aligned_locals", aligned_locals},
                             {"realigned_variable_frames", realigned_variable_frames},
                             {"registers", registers},
                             {"variable_arguments", variable_arguments},
                             {"inside_qsort", inside_qsort},
                             {"inside_bsearch", inside_bsearch},
                             {"inside_lambda", inside_lambda},
                             {"exception_in_flight", exception_in_flight},
                             {"inside_catch", inside_catch}};

}  // namespace

#define SHAPES_JOIN(a, b) a##b
#define SHAPES_FUNCTION(way) SHAPES_JOIN(shapes_, way)
#define SHAPES_TEXT(way) #way
#define SHAPES_NAME(way) SHAPES_TEXT(way)
Shapes SHAPES_FUNCTION(SHAPES_WAY)() {
  return {SHAPES_NAME(SHAPES_WAY), std::begin(kShapes), std::end(kShapes)};
}

}  // namespace tidemark::process
