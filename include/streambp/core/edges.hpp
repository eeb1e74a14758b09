// Places where rows are cut, 0 = e0 < e1 < ...: in long sequences too many to list, so what repeats
// is written once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "position.hpp"
#include "random.hpp"

namespace streambp {

// Up to `last` edges come again after every `period` rows.
struct repetition {
  position period = 0;
  position last = 0;
  // How often the edges of [first, first + rows) come one after another, once at least.
  constexpr position times(position first, position rows) const {
    return rows % period == 0 ? std::max((last - first) / rows, position(1)) : 1;
  }
};

// The rows between two edges next to each other are a part. Memory and time grow with the runs of
// parts that repeat, not with their number.
class edges {
 public:
  // No part: e0 alone.
  edges() = default;
  // Requires ascending edges, the first one 0.
  edges(std::initializer_list<position> listed) {
    for (const position e : listed)
      if (e > 0) append(e - back());
  }

  position parts() const { return runs_.empty() ? 0 : runs_.back().parts_through(); }
  position size() const { return parts() + 1; }
  position back() const { return runs_.empty() ? 0 : runs_.back().through(); }
  position operator[](position i) const { return i < parts() ? place(runs_, i) : back(); }
  row_range part(position i) const { return {(*this)[i], (*this)[i + 1]}; }

  // How many edges come before `row`: the number of the first one that does not.
  position lower_bound(position row) const {
    return row <= 0 ? 0 : row > back() ? size() : before(runs_, row);
  }
  // The last edge that is not behind `row`. Requires 0 <= row.
  position at_most(position row) const { return row >= back() ? back() : last(runs_, row); }
  // The first edge behind the edge `row`. Requires row < back().
  position after(position row) const { return row + next(runs_, row); }
  // Of the part that begins at the edge `row`. Requires row < back().
  repetition repetition_at(position row) const {
    const run& r = run_at(runs_, &run::first, row);
    return {r.rows, r.through()};
  }

  position largest() const { return largest(runs_); }

  // Behind all others: `times` parts of `rows` rows.
  void append(position rows, position times = 1) { push({0, 0, rows, 1, times, {}}); }
  // ... or those of `word`, `times` over.
  void append(const edges& word, position times = 1) {
    if (word.runs_.size() == 1) {
      run only = word.runs_.front();
      only.times *= times;
      push(std::move(only));
    } else if (times == 1) {
      for (const run& r : word.runs_) push(r);
    } else if (!word.runs_.empty()) {
      push({0, 0, word.back(), word.parts(), times, word.runs_});
    }
  }

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = position;
    using difference_type = std::ptrdiff_t;
    using pointer = const position*;
    using reference = position;
    iterator(const edges& of, position i) : of_(&of), i_(i) {}
    position operator*() const { return (*of_)[i_]; }
    iterator& operator++() {
      ++i_;
      return *this;
    }
    iterator operator++(int) { return {*of_, i_++}; }
    bool operator==(const iterator&) const = default;

   private:
    const edges* of_;
    position i_;
  };
  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, size()}; }

  // The same edges, however they are written.
  bool operator==(const edges& other) const {
    return runs_ == other.runs_ || (size() == other.size() && back() == other.back() &&
                                    std::equal(begin(), end(), other.begin()));
  }
  // Of how they are written.
  std::uint64_t hash() const { return hash(1, runs_); }

 private:
  // `times` times the same parts, one of `rows` rows or those of `inner`.
  struct run {
    position first;  // row, counted as `index` from the start of what holds the run
    position index;  // parts before it
    position rows;   // of one time
    position parts;  // of one time
    position times;
    std::vector<run> inner;
    position through() const { return first + rows * times; }
    position parts_through() const { return index + parts * times; }
    bool operator==(const run&) const = default;
  };
  using run_list = std::vector<run>;

  void push(run r) {
    if (!runs_.empty()) {
      run& last = runs_.back();
      if (last.rows == r.rows && last.inner == r.inner) {
        last.times += r.times;
        return;
      }
    }
    r.first = back();
    r.index = parts();
    runs_.push_back(std::move(r));
  }

  // The run that holds what begins at `place`, a row or a number.
  static const run& run_at(const run_list& runs, position run::*from, position place) {
    return *std::prev(std::upper_bound(runs.begin(), runs.end(), place,
                                       [from](position p, const run& r) { return p < r.*from; }));
  }
  static position place(const run_list& runs, position i) {
    const run& r = run_at(runs, &run::index, i);
    const position time = (i - r.index) / r.parts;
    return r.first + time * r.rows +
           (r.inner.empty() ? 0 : place(r.inner, (i - r.index) % r.parts));
  }
  static position before(const run_list& runs, position row) {
    const run& r = run_at(runs, &run::first, row - 1);
    const position time = (row - 1 - r.first) / r.rows;
    return r.index + time * r.parts +
           (r.inner.empty() ? 1 : before(r.inner, row - r.first - time * r.rows));
  }
  static position last(const run_list& runs, position row) {
    const run& r = run_at(runs, &run::first, row);
    const position begin = r.first + (row - r.first) / r.rows * r.rows;
    return r.inner.empty() ? begin : begin + last(r.inner, row - begin);
  }
  // Rows of the part that begins at `row`.
  static position next(const run_list& runs, position row) {
    const run& r = run_at(runs, &run::first, row);
    return r.inner.empty() ? r.rows : next(r.inner, (row - r.first) % r.rows);
  }
  static position largest(const run_list& runs) {
    position most = 0;
    for (const run& r : runs) most = std::max(most, r.inner.empty() ? r.rows : largest(r.inner));
    return most;
  }
  static std::uint64_t hash(std::uint64_t h, const run_list& runs) {
    for (const run& r : runs) {
      h = mixed(mixed(h, std::uint64_t(r.rows)), std::uint64_t(r.times));
      h = mixed(hash(h, r.inner), r.inner.size());
    }
    return h;
  }

  run_list runs_;
};

}  // namespace streambp
