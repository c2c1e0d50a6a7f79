# A text file as a C++ string. Run by the build when the file changes:
#   cmake -D INPUT=replay.py -D HEADER=simulate/replay_script.h -D NAME=kReplayScript -D OUTPUT=replay_script.cpp -P embed_text.cmake
cmake_minimum_required(VERSION 3.25)

file(READ ${INPUT} text)
string(FIND "${text}" ")tidemark\"" end)
if(NOT end EQUAL -1)
  message(FATAL_ERROR "${INPUT}: contains )tidemark\", which ends the string that it is embedded as")
endif()
cmake_path(GET INPUT FILENAME name)
file(WRITE ${OUTPUT} "// Made by cmake/embed_text.cmake from ${name}.
#include \"${HEADER}\"

namespace tidemark {

const std::string_view ${NAME} = R\"tidemark(${text})tidemark\";

}  // namespace tidemark
")
