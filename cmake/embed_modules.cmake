# Python modules as a list of strings in C++, name and text by turns up to a null pointer, in the order of their names in MODULES: each
# imports those before it alone. Run by the build when one of them changes:
#   cmake -D FOLDER=python/tidemark/_holders -D MODULES=_safe,_types -D OUTPUT=holder_modules.cpp -P embed_modules.cmake
cmake_minimum_required(VERSION 3.25)

set(entries "")
string(REPLACE "," ";" names ${MODULES})
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name}.py text)
  string(FIND "${text}" ")tidemark\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${FOLDER}/${name}.py: contains )tidemark\", which ends the string that it is embedded as")
  endif()
  string(APPEND entries "    \"${name}\", R\"tidemark(${text})tidemark\",\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/embed_modules.cmake.
namespace tidemark::process {

extern const char* const kHolderModules[];
const char* const kHolderModules[] = {
${entries}    nullptr};

}  // namespace tidemark::process
")
