# Style sheet and script of the HTML report as a C++ source, with the script's hash for its Content-Security-Policy. Run
# by the build when one of them changes:
#   cmake -D STYLE=page.css -D SCRIPT=page.js -D OUTPUT=page_files.cpp -P embed_page.cmake
cmake_minimum_required(VERSION 3.25)

# The bytes of a hexadecimal number of whole bytes, in base64 (RFC 4648, section 4).
function(base64 hex result)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(LENGTH ${hex} digits)
  math(EXPR missing "(6 - ${digits} % 6) % 6")  # hexadecimal digits to the next group of three bytes
  string(REPEAT 0 ${missing} zeros)
  string(APPEND hex "${zeros}")
  set(text "")
  math(EXPR last "${digits} + ${missing} - 6")
  foreach(begin RANGE 0 ${last} 6)
    string(SUBSTRING ${hex} ${begin} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  math(EXPR padding "${missing} / 2")
  string(LENGTH ${text} length)
  math(EXPR kept "${length} - ${padding}")
  string(SUBSTRING ${text} 0 ${kept} text)
  string(REPEAT = ${padding} equals)
  set(${result} "${text}${equals}" PARENT_SCOPE)
endfunction()

foreach(file STYLE SCRIPT)
  file(READ ${${file}} text)
  string(FIND "${text}" ")tidemark\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${${file}}: contains )tidemark\", which ends the string that it is embedded as")
  endif()
  set(${file}_TEXT "${text}")
endforeach()
file(SHA256 ${SCRIPT} digest)
base64(${digest} hash)
file(WRITE ${OUTPUT} "// Made by cmake/embed_page.cmake from page.css and page.js.
#include \"report/html/sections.h\"

namespace tidemark::html {

const std::string_view kPageStyle = R\"tidemark(${STYLE_TEXT})tidemark\";
const std::string_view kPageScript = R\"tidemark(${SCRIPT_TEXT})tidemark\";
const std::string_view kPageScriptHash = \"sha256-${hash}\";

}  // namespace tidemark::html
")
