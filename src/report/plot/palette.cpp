#include "report/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace tidemark {
namespace {

struct Entry {
  const char* name;
  std::uint32_t light;  // 0xRRGGBB
  std::uint32_t dark;
};

// By Role. Hues after Okabe and Ito, so that colour-blind people can distinguish them; greys are not the program's
// memory.
constexpr std::array<Entry, kRoles> kPalette = {{
    {"paper", 0xFFFFFF, 0x14171C},
    {"ink", 0x1A1F29, 0xE4E7EC},
    {"quiet", 0x5F6875, 0x98A1AE},
    {"rule", 0xE2E5EA, 0x2C323B},
    {"allocated", 0x0073B3, 0x56B4E9},
    {"reserved", 0xD55E00, 0xF0883E},
    {"active", 0x009E73, 0x2FC79A},
    {"cached", 0x99C5E1, 0x2A5F86},
    {"alarm", 0xB3141E, 0xFF7B7B},
    {"driver", 0x009E73, 0x2FB58C},
    {"rss", 0xCC79A7, 0xCF86AF},
    {"pss", 0x8A3A66, 0xE9B3D0},
    {"library1", 0x009E73, 0x2FB58C},
    {"library2", 0xE69F00, 0xE0A72E},
    {"library3", 0xCC79A7, 0xCF86AF},
    {"library4", 0xD55E00, 0xE5752D},
    {"library5", 0xF0E442, 0xDDD24B},
    {"library", 0x8CA873, 0x7D9866},
    {"context", 0x808A99, 0x7F8998},
    {"processes", 0xCCD1D9, 0x49515C},
    {"unexplained", 0xFFFFFF, 0x14171C},
    {"site1", 0x0073B3, 0x56B4E9},
    {"site2", 0xE69F00, 0xE0A72E},
    {"site3", 0x009E73, 0x2FB58C},
    {"site4", 0xCC79A7, 0xCF86AF},
    {"site5", 0x7FC4EE, 0x2F6F9F},
    {"site6", 0xD55E00, 0xE5752D},
    {"site7", 0xF0E442, 0xDDD24B},
    {"site8", 0x8A6BBE, 0xA58BD6},
    {"other-sites", 0xB4BCC7, 0x6C7683},
    {"unrecorded", 0xE2E5EA, 0x3A424D},
    {"parameters", 0x0073B3, 0x56B4E9},
    {"buffers", 0x7FC4EE, 0x2F6F9F},
    {"gradients", 0xE69F00, 0xE0A72E},
    {"per-sample-gradients", 0xD55E00, 0xE5752D},
    {"optimizer-state", 0x009E73, 0x2FB58C},
    {"activations", 0xCC79A7, 0xCF86AF},
    {"inputs", 0xF0E442, 0xDDD24B},
    {"temporaries", 0x8A6BBE, 0xA58BD6},
    {"workspaces", 0x8CA873, 0x7D9866},
    {"copies", 0xB08A5B, 0x9C7A50},
    {"unknown-category", 0xB4BCC7, 0x6C7683},
    {"data-phase", 0xB8BDC6, 0x59616D},
    {"forward-phase", 0x5B7FA6, 0x7F9CBD},
    {"backward-phase", 0x7A2E5D, 0xB0608F},
    {"recomputation-phase", 0xC99AB8, 0xD9B3CB},
    {"optimizer-phase", 0x3F3F46, 0xD8DBE0},
    {"even-step", 0xD5DAE1, 0x3F4753},
    {"odd-step", 0xEDEFF2, 0x2A3039},
    {"pending-free", 0x009E73, 0x2FC79A},
    {"mixed", 0x99C5E1, 0x2A5472},
    {"free", 0xDEE3E8, 0x363D47},
    {"root", 0xF5F6F8, 0x1C2027},
    {"own", 0x9FCBE8, 0x1F5D86},
    {"library-code", 0xDDE3EA, 0x333B46},
    {"native", 0xF2DCC3, 0x5A4630},
    {"no-stack", 0xFFFFFF, 0x14171C},
    {"fits", 0x9ED9C2, 0x1B6B52},
    {"fits-predicted", 0xDDF2EA, 0x173F33},
    {"exceeds", 0xF2A9A0, 0x7A2E26},
    {"exceeds-predicted", 0xFBE3E0, 0x45211D},
    {"heat1", 0xF7EFD5, 0x2B2A22},
    {"heat2", 0xF3D27F, 0x5A4A1E},
    {"heat3", 0xE9A23B, 0x8F6A1B},
    {"heat4", 0xD46A1F, 0xC27A24},
    {"heat5", 0xA83218, 0xE58B4A},
    {"heat6", 0x5E0F1F, 0xFFC2A8},
}};

const Entry& entry(Role role) {
  return kPalette[static_cast<std::size_t>(role)];
}

/// Relative luminance (WCAG 2.1), 0 to 1.
double luminance_of(Colour colour) {
  const auto linear = [](std::uint8_t part) {
    const double share = part / 255.0;
    return share <= 0.03928 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

}  // namespace

Colour colour_of(Role role) {
  const std::uint32_t rgb = entry(role).light;
  return {static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8 & 0xFF),
          static_cast<std::uint8_t>(rgb & 0xFF)};
}

Role text_role_on(Role area) {
  const auto contrast = [area](Role text) {
    const double below = luminance_of(colour_of(area)) + 0.05;
    const double above = luminance_of(colour_of(text)) + 0.05;
    return std::max(below, above) / std::min(below, above);
  };
  return contrast(Role::ink) >= contrast(Role::paper) ? Role::ink : Role::paper;
}

const char* name_of(Role role) {
  return entry(role).name;
}

std::string palette_style() {
  std::string light;
  std::string dark;
  std::string classes;
  for (const Entry& colour : kPalette) {
    fmt::format_to(std::back_inserter(light), " --{}: #{:06x};", colour.name, colour.light);
    fmt::format_to(std::back_inserter(dark), " --{}: #{:06x};", colour.name, colour.dark);
    fmt::format_to(std::back_inserter(classes), ".{0} {{ --role: var(--{0}); }}\n", colour.name);
  }
  return fmt::format(":root {{{} }}\n@media screen and (prefers-color-scheme: dark) {{\n  :root {{{} }}\n}}\n{}", light,
                     dark, classes);
}

}  // namespace tidemark
