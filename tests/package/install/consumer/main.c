/* Uses the installed API, and says whether it is being recorded. */
#include <stdio.h>
#include <tidemark/control.h>

int main(void) {
  tidemark_range_begin_if_recording("all of it");
  tidemark_pause_if_recording();
  tidemark_resume_if_recording();
  tidemark_mark_if_recording("nearly done");
  tidemark_range_end_if_recording("all of it");
  puts(tidemark_mark ? "recorded" : "not recorded");
  return 0;
}
