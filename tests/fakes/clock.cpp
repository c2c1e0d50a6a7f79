// Preloaded into a program, it makes time pass faster at first: so that tests take seconds instead of a minute of
// samples. FAKES_CLOCK="SPEED SECONDS": seconds of CLOCK_MONOTONIC that pass SPEED times as fast from the program's
// start on; later ones are real. Waits on condition variables follow it, others (poll, sleeps) take real time. The time
// of day is unchanged.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t in_ns(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}
timespec as_time(std::int64_t ns) {
  return {ns / kSecond, ns % kSecond};
}

std::int64_t real_ns() {
  timespec time{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return in_ns(time);
}

struct Speed {
  std::int64_t began_ns = real_ns();
  std::int64_t times = 1;
  std::int64_t fast_ns = 0;  // of the program's time

  Speed() {
    const char* const text = std::getenv("FAKES_CLOCK");
    char* rest = nullptr;
    if (text == nullptr) return;
    times = std::max(std::strtol(text, &rest, 10), 1L);
    fast_ns = std::strtol(rest, nullptr, 10) * kSecond;
  }
  [[nodiscard]] std::int64_t from_real(std::int64_t real) const {
    const std::int64_t since = real - began_ns;
    return began_ns + (since * times < fast_ns ? since * times : fast_ns + since - fast_ns / times);
  }
  [[nodiscard]] std::int64_t to_real(std::int64_t ns) const {
    const std::int64_t since = ns - began_ns;
    return began_ns + (since < fast_ns ? since / times : fast_ns / times + since - fast_ns);
  }
};

const Speed& speed() {
  static const Speed of_program;
  return of_program;
}

[[gnu::constructor]] void begin() {
  (void)speed();
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  if (clock != CLOCK_MONOTONIC) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  *time = as_time(speed().from_real(real_ns()));
  return 0;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto wait = reinterpret_cast<Wait>(::dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  const timespec real = clock == CLOCK_MONOTONIC ? as_time(speed().to_real(in_ns(*until))) : *until;
  return wait(condition, mutex, clock, &real);
}
