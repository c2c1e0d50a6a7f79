#include "tui/state.h"

#include <algorithm>

namespace tidemark::tui {
namespace {

constexpr std::size_t kPage = 10;
constexpr std::size_t kLongestName = 4096;  // PATH_MAX

// While a file's name is typed, keys are its letters.
Request type(State& state, const Key& key) {
  std::string& name = *state.file_name;
  if (key.code == KeyCode::enter && !name.empty()) return Request::save;
  if (key.code == KeyCode::escape || key.code == KeyCode::enter) state.file_name.reset();
  if (key.code == KeyCode::text && name.size() + key.text.size() < kLongestName) name += key.text;
  if (key.code == KeyCode::backspace && !name.empty()) {
    while (name.size() > 1 && (static_cast<unsigned char>(name.back()) & 0xC0U) == 0x80U) name.pop_back();
    name.pop_back();
  }
  return Request::none;
}

void show(State& state, std::size_t view) {
  state.view = view;
  state.help = false;
}

void select(ViewState& view, std::size_t rows, const Key& key) {
  if (rows == 0) return;
  std::size_t& row = view.selected = row_of(view.selected, rows);
  if (key.code == KeyCode::up) row -= std::min<std::size_t>(row, 1);
  if (key.code == KeyCode::down) row = std::min(row + 1, rows - 1);
  if (key.code == KeyCode::page_up) row -= std::min(row, kPage);
  if (key.code == KeyCode::page_down) row = std::min(row + kPage, rows - 1);
  if (key.code == KeyCode::home) row = 0;
  if (key.code == KeyCode::end) row = rows - 1;
}

// Up to the first and the last of them, not around.
void choose_other(ViewState& view, std::size_t others, const Key& key) {
  view.other = row_of(view.other, others);
  if (key.code == KeyCode::left) view.other -= std::min<std::size_t>(view.other, 1);
  if (key.code == KeyCode::right && view.other + 1 < others) ++view.other;
}

Request press(State& state, const Key& key) {
  if (key.is('q')) return Request::quit;
  if (key.is('r')) return Request::record;
  if (key.is('m')) return Request::mark;
  if (key.is('w')) state.file_name.emplace();
  if (key.is('h') || key.is('?')) state.help = !state.help;
  if (key.is('s')) {
    std::size_t& order = state.views[state.view].order;
    order = (order + 1) % std::max<std::size_t>(views()[state.view].orders.size(), 1);
  }
  if (key.is('p')) {
    state.paused = !state.paused;
    return Request::pause;
  }
  const char digit = key.text.size() == 1 ? key.text.front() : '\0';
  if (digit >= '1' && digit < static_cast<char>('1' + kViews)) show(state, static_cast<std::size_t>(digit - '1'));
  return Request::none;
}

}  // namespace

Request handle_key(State& state, const Content& content, const Key& key) {
  if (key.code == KeyCode::other) return Request::none;
  state.message = {};
  if (key.code == KeyCode::redraw) return Request::redraw;
  if (state.file_name) return type(state, key);
  if (key.code == KeyCode::text) return press(state, key);
  if (key.code == KeyCode::escape) state.help = false;
  if (key.code == KeyCode::tab) show(state, (state.view + 1) % kViews);
  if (key.code == KeyCode::back_tab) show(state, (state.view + kViews - 1) % kViews);
  const View& view = views()[state.view];
  ViewState& place = state.views[state.view];
  select(place, view.rows(content, place), key);
  if (view.others != nullptr) choose_other(place, view.others(content), key);
  return Request::none;
}

}  // namespace tidemark::tui
