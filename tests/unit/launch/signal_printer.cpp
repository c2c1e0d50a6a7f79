// Prints "ready" and then the number of each received signal, with the value sent along if there is one. Ends with its
// parent.   signal_printer [leave-group]
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  if (argc > 1 && std::string_view(argv[1]) == "leave-group" && ::setpgid(0, 0) != 0) return 1;
  std::puts("ready");
  std::fflush(stdout);
  for (siginfo_t signal{}; ::sigwaitinfo(&all, &signal) > 0;) {
    if (signal.si_code == SI_QUEUE) {
      std::printf("%d value %d\n", signal.si_signo, signal.si_value.sival_int);
    } else {
      std::printf("%d\n", signal.si_signo);
    }
    std::fflush(stdout);
  }
}
