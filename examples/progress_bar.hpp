// Where a long loop stands: one line that is written over on a terminal, a line now and then
// elsewhere.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

class progress_bar {
 public:
  // `before` of the steps were done by others.
  progress_bar(long steps, double seconds_between_lines, long before = 0)
      : steps_(steps), before_(before), pause_(seconds_between_lines) {}

  // `step` of the steps are done.
  void show(long step, const std::string& text) {
    const bool last = step == steps_;
    if (terminal_) {
      std::printf("\r%s %s%s\033[K%s", bar(step).c_str(), text.c_str(), left(step).c_str(),
                  last ? "\n" : "");
    } else {
      if (!last && step > before_ + 1 && seconds() - written_ < pause_) return;
      std::printf("step %ld of %ld  %s%s\n", step, steps_, text.c_str(), left(step).c_str());
    }
    written_ = seconds();
    std::fflush(stdout);
  }

  double seconds() const { return std::chrono::duration<double>(clock::now() - start_).count(); }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr long width = 20;

  std::string bar(long step) const {
    const long full = width * step / steps_;
    return "[" + std::string(std::size_t(full), '=') + std::string(std::size_t(width - full), ' ') +
           "] " + std::to_string(step) + "/" + std::to_string(steps_) + " ";
  }
  std::string left(long step) const {
    const long rest = long(seconds() / double(step - before_) * double(steps_ - step) + 0.5);
    char text[32];
    std::snprintf(text, sizeof text, "  %ld:%02ld left", rest / 60, rest % 60);
    return text;
  }

  long steps_;
  long before_;
  double pause_;
  double written_ = 0;
  clock::time_point start_ = clock::now();
  bool terminal_ = ::isatty(STDOUT_FILENO) != 0;
};
