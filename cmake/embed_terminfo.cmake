# Descriptions of terminals as C++ strings, in the form that ncurses reads from the variable TERMINFO. Run by the build:
#   cmake -D INFOCMP=/usr/bin/infocmp -D OUTPUT=terminal_descriptions.cpp -P embed_terminfo.cmake
cmake_minimum_required(VERSION 3.25)

set(entries "")
foreach(name xterm-256color screen-256color linux)
  execute_process(COMMAND ${INFOCMP} -0 -Q1 ${name} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "hex:[0-9A-F]+" description "${text}")
  if(NOT description)
    message(FATAL_ERROR "${INFOCMP} -0 -Q1 ${name} printed no description in hexadecimal digits: ${text}")
  endif()
  string(APPEND entries "    {\"${name}\",\n     \"${description}\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/embed_terminfo.cmake.
#include \"tui/terminal/display.h\"

namespace tidemark::tui {

const std::array<TerminalDescription, 3> kTerminalDescriptions = {{
${entries}}};

}  // namespace tidemark::tui
")
