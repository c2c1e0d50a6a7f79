# Headers that nearly every source includes, compiled once: the standard library and fmt take most of the time of a small
# source, GoogleTest of a test, nlohmann-json of those that use it. Sources include what they use all the same, so that they
# compile without it (TIDEMARK_PCH=OFF).
option(TIDEMARK_PCH "Precompile the headers of libraries" ON)

set(tidemark_precompiled_headers
  <algorithm> <array> <bit> <chrono> <cstddef> <cstdint> <functional> <limits> <map> <memory> <optional> <string>
  <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# tidemark_precompile(TARGET [JSON]): TARGET uses the precompiled headers of the stages; JSON: with nlohmann-json among them,
# which costs a source that does not use it half a second. Its flags must be those of tidemark_options.
function(tidemark_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "JSON" "" "")
  tidemark_use_precompiled(${target} stages "${arg_JSON}" "-fPIC" "")
endfunction()

# tidemark_precompile_test(TARGET): the same with GoogleTest, for test programs, which have flags of their own, and with
# nlohmann-json where TARGET links it.
function(tidemark_precompile_test target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if("nlohmann_json::nlohmann_json" IN_LIST libraries)
    set(json TRUE)
  else()
    set(json FALSE)
  endif()
  tidemark_use_precompiled(${target} tests ${json} "-fPIE;${tidemark_test_options}" "GTest::gtest;GTest::gmock"
    <gtest/gtest.h> <gmock/gmock.h>)
endfunction()

# tidemark_use_precompiled(TARGET KIND JSON OPTIONS LIBRARIES header...)
function(tidemark_use_precompiled target kind json options libraries)
  if(NOT TIDEMARK_PCH)
    return()
  endif()
  set(precompiled tidemark_precompiled_${kind})
  set(headers ${tidemark_precompiled_headers} ${ARGN})
  if(json)
    string(APPEND precompiled _json)
    list(APPEND headers <nlohmann/json.hpp>)
    list(APPEND libraries nlohmann_json::nlohmann_json)
  endif()
  if(NOT TARGET ${precompiled})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/${precompiled}.cpp CONTENT "")
    add_library(${precompiled} OBJECT ${PROJECT_BINARY_DIR}/precompiled/${precompiled}.cpp)
    # Programs are compiled with -fPIE, libraries with -fPIC; what uses precompiled headers has to have the same.
    set_target_properties(${precompiled} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${precompiled} PRIVATE ${options})
    target_link_libraries(${precompiled} PRIVATE fmt::fmt ${libraries} tidemark_options)
    target_precompile_headers(${precompiled} PRIVATE ${headers})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      # Without it the file holds the time at which it was made, and ccache takes everything that uses it for changed.
      target_compile_options(${precompiled} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()
