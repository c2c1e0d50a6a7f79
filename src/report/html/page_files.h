// page.css and page.js, which the build embeds (cmake/embed_page.cmake).
#pragma once

#include <string_view>

namespace tidemark::html {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
/// "sha256-...", as a Content-Security-Policy names the script: of the bytes between <script> and </script>.
extern const std::string_view kPageScriptHash;

}  // namespace tidemark::html
