#include "follow/sliding_window.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "store/builder.h"

namespace tidemark {

void SlidingWindow::add(const Event& event) {
  if (!take_lead_in(event)) events_.push_back(event);
  pass(event.time_ns);
}

// As in store/load.cpp.
bool SlidingWindow::take_lead_in(const Event& event) {
  if (beginning_ == Beginning::behind) return false;
  if (beginning_ == Beginning::before) {
    const bool leads_in = event.kind == EventKind::pause && event.time_ns == 0 && !event.thread.valid();
    beginning_ = leads_in ? Beginning::lead_in : Beginning::behind;
    if (!leads_in) return false;
  }
  before_.add(event);
  if (event.kind != EventKind::resume) return true;
  beginning_ = Beginning::behind;
  begin_ns_ = event.time_ns;
  left_ = true;
  return true;
}

void SlidingWindow::add_sample(const SampleRecord& record) {
  (std::holds_alternative<SampledDevice>(record) ? devices_ : samples_).push_back(record);
  pass(time_of(record));
}

void SlidingWindow::begin_anew() {
  beginning_ = Beginning::before;
  before_ = {};
  events_.clear();
}

void SlidingWindow::pass(std::uint64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  leave(now_ns_ - std::min(now_ns_, static_cast<std::uint64_t>(limits_.length.count())));
}

void SlidingWindow::leave(std::uint64_t begin) {
  while (!events_.empty() && (events_.front().time_ns < begin || events_.size() > limits_.events)) {
    // A clock that stepped back does not move the beginning back.
    begin = std::max(begin, events_.front().time_ns);
    before_.add(events_.front());
    events_.pop_front();
    left_ = true;
  }
  if (left_) begin_ns_ = std::max(begin_ns_, begin);
  while (!samples_.empty() && time_of(samples_.front()) < begin_ns_) samples_.pop_front();
}

Store SlidingWindow::store(std::string path, Definitions definitions) const {
  StoreBuilder builder;
  builder.reserve(events_.size() + before_.count());
  if (left_) before_.lead_in(begin_ns_, [&builder](const Event& event) { builder.add(event); });
  for (const SampleRecord& device : devices_) builder.add_sample(device);
  for (const SampleRecord& sample : samples_) builder.add_sample(sample);
  for (const Event& event : events_) builder.add(event);
  std::erase_if(definitions.marks, [this](const Mark& mark) { return mark.time_ns < begin_ns_; });
  return std::move(builder).finish(std::move(path), std::move(definitions));
}

}  // namespace tidemark
