// Rows that live at different times share columns.
#pragma once

#include <algorithm>
#include <array>

#include "../expression/graph.hpp"

namespace streambp::autodiff {

// Columns [0, fixed) are one slot, those behind them another: no rows lie across the two.
class column_packing {
 public:
  explicit column_packing(position fixed) : fixed_(fixed), end_(fixed) {}

  // Rows that live from step `first` to step `last`, both included. Returns their number.
  int hold(position at, position cols, int first, int last) {
    all_[std::size_t(count_)] = {at, cols, first, last};
    end_ = std::max(end_, at + cols);
    return count_++;
  }
  // In the first columns that are free then, from column `from` on.
  int place(position cols, int first, int last, position from = 0) {
    position at = from;
    const auto clash = [&](const held& h) {
      return h.last >= first && h.first <= last && h.at < at + cols && at < h.at + h.cols;
    };
    for (bool moved = true; moved;) {
      moved = at < fixed_ && at + cols > fixed_;
      if (moved) at = fixed_;
      for (int i = 0; i < count_; ++i)
        if (clash(all_[std::size_t(i)])) {
          at = all_[std::size_t(i)].at + all_[std::size_t(i)].cols;
          moved = true;
        }
    }
    return hold(at, cols, first, last);
  }
  // What is placed after this sees these rows live on, under another name.
  void prolong(int number, int last) { all_[std::size_t(number)].last = last; }

  position at(int number) const { return all_[std::size_t(number)].at; }
  position cols(int number) const { return all_[std::size_t(number)].cols; }
  position end() const { return end_; }

 private:
  struct held {
    position at = 0, cols = 0;
    int first = 0, last = 0;
  };
  std::array<held, 3 * graph::most> all_{};
  int count_ = 0;
  position fixed_;
  position end_;
};

}  // namespace streambp::autodiff
