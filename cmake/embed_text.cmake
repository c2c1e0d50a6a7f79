# A text file as an array of characters in C++; see embed.cmake. Run by the build when the file changes:
#   cmake -D INPUT=replay.py -D NAMESPACE=tidemark -D NAME=kReplayScript -D OUTPUT=replay_py.cpp -P embed_text.cmake
cmake_minimum_required(VERSION 3.25)

file(READ ${INPUT} text)
string(FIND "${text}" ")tidemark\"" end)
if(NOT end EQUAL -1)
  message(FATAL_ERROR "${INPUT}: contains )tidemark\", which ends the string that it is embedded as")
endif()
cmake_path(GET INPUT FILENAME name)
file(WRITE ${OUTPUT} "// Made by cmake/embed_text.cmake from ${name}.
namespace ${NAMESPACE} {

extern const char ${NAME}[];
// It may be longer than what compilers have to accept in one string; GCC and clang do.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
const char ${NAME}[] = R\"tidemark(${text})tidemark\";
#pragma GCC diagnostic pop

}  // namespace ${NAMESPACE}
")
