// What the library says without refusing anything: to one sink, standard error unless set.
#pragma once

#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "language.hpp"

namespace streambp {

using warning_sink = std::function<void(std::string_view)>;

namespace detail {

struct warning_state {
  std::mutex one_at_a_time;
  warning_sink sink = [](std::string_view text) { std::cerr << "streambp: " << text << "\n"; };
};
inline warning_state& warnings() {
  static warning_state state;
  return state;
}

}  // namespace detail

// Returns the sink before it. An empty one silences all warnings.
inline warning_sink set_warning_sink(warning_sink sink) {
  auto& w = detail::warnings();
  const std::lock_guard<std::mutex> lock(w.one_at_a_time);
  return std::exchange(w.sink, std::move(sink));
}

inline void warn(const std::string& text) {
  warning_sink sink;  // called without the lock: it may set another one
  {
    auto& w = detail::warnings();
    const std::lock_guard<std::mutex> lock(w.one_at_a_time);
    sink = w.sink;
  }
  if (sink) sink(text);
}

}  // namespace streambp
