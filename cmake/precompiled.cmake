# Headers that nearly every source includes, compiled once: the standard library and fmt take most of the time of a small
# source. Sources include what they use all the same, so that they compile without it (TIDEMARK_PCH=OFF).
option(TIDEMARK_PCH "Precompile the headers of libraries" ON)

set(tidemark_precompiled_headers
  <algorithm> <array> <bit> <chrono> <cstddef> <cstdint> <functional> <limits> <map> <memory> <optional> <string>
  <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# tidemark_precompile(TARGET): TARGET uses the precompiled headers of the stages. Its flags must be those of tidemark_options.
function(tidemark_precompile target)
  if(NOT TIDEMARK_PCH)
    return()
  endif()
  if(NOT TARGET tidemark_precompiled)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/stages.cpp CONTENT "")
    add_library(tidemark_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled/stages.cpp)
    target_link_libraries(tidemark_precompiled PRIVATE fmt::fmt tidemark_options)
    target_precompile_headers(tidemark_precompiled PRIVATE ${tidemark_precompiled_headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM tidemark_precompiled)
endfunction()

# tidemark_precompile_test(TARGET): the same with GoogleTest, for tests, which have flags of their own.
function(tidemark_precompile_test target)
  if(NOT TIDEMARK_PCH)
    return()
  endif()
  if(NOT TARGET tidemark_test_precompiled)
    # A program, as tests are: its objects are position-independent in the way of programs (-fPIE).
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/tests.cpp CONTENT "int main() {}\n")
    add_executable(tidemark_test_precompiled ${PROJECT_BINARY_DIR}/precompiled/tests.cpp)
    target_compile_options(tidemark_test_precompiled PRIVATE ${tidemark_test_options})
    target_link_libraries(tidemark_test_precompiled PRIVATE fmt::fmt GTest::gtest GTest::gmock tidemark_options)
    target_precompile_headers(tidemark_test_precompiled PRIVATE
      ${tidemark_precompiled_headers} <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM tidemark_test_precompiled)
endfunction()
