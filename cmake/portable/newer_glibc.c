// Functions of glibc newer than 2.28 that Debian's archives call: see scripts/portable.sh.
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

void arc4random_buf(void* bytes, size_t size);
uint32_t arc4random(void);

// glibc 2.36. libexpat seeds its hash tables with it.
void arc4random_buf(void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = getrandom((char*)bytes + done, size - done, 0);
    if (got > 0) done += (size_t)got;
  }
}

// glibc 2.36. libevent draws the identifiers of its DNS queries with it, of which there are none.
uint32_t arc4random(void) {
  uint32_t number = 0;
  arc4random_buf(&number, sizeof(number));
  return number;
}
