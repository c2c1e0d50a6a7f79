// ncurses without its macros, which have names such as `move` and `erase`.
#pragma once

#define NCURSES_NOMACROS 1  // NOLINT
#define NCURSES_WIDECHAR 1  // NOLINT
#include <curses.h>         // IWYU pragma: export

#include <climits>
#include <cwchar>
#undef OK
