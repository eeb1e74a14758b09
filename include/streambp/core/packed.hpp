// Samples one after another on one axis: segments, and the pieces of them that a chunk holds.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "error.hpp"
#include "position.hpp"

namespace streambp {

// A chunk's share of one segment.
struct piece {
  position segment = 0;
  position row = 0;     // first row, counted from the chunk's start
  position rows = 0;
  position start = 0;   // position of the first row in its segment
  position before = 0;  // rows that the segment sees ahead of its own first row (a prefix memory)
  // Memory rows that the segment sees, in order of position: prefix, then its own. Own rows that
  // come after the chunk are included; an operator that sees the past stops at its own row.
  std::array<row_range, 2> seen{};

  position last() const { return row + rows; }
};

// Offsets of packed samples: segment s holds the rows [offset(s), offset(s + 1)). Empty segments are
// legal.
class packed {
 public:
  packed() = default;

  // Throws shape_error unless offsets start at 0 and never descend.
  explicit packed(std::vector<position> offsets) : offsets_(std::move(offsets)) {
    if (offsets_.size() < 2)
      throw shape_error(sentence("packed: ", offsets_.size(),
                                 " offsets describe no segment; give 0 and the end of each sample"));
    if (offsets_.front() != 0)
      throw shape_error(sentence("packed: offsets[0] is ", offsets_.front(), ", it must be 0"));
    for (std::size_t s = 1; s < offsets_.size(); ++s)
      if (offsets_[s] < offsets_[s - 1])
        throw shape_error(sentence("packed: offsets[", s, "] is ", offsets_[s],
                                   ", less than offsets[", s - 1, "] = ", offsets_[s - 1],
                                   "; offsets are running sums of lengths"));
  }

  static packed one(position tokens) { return packed({0, tokens}); }

  position tokens() const { return offsets_.empty() ? 0 : offsets_.back(); }
  position segments() const { return position(offsets_.size()) - 1; }
  row_range segment(position s) const { return {offsets_[s], offsets_[s + 1]}; }
  std::span<const position> offsets() const { return offsets_; }

  // The first segment that ends after `row`.
  position segment_at(position row) const {
    return position(std::upper_bound(offsets_.begin() + 1, offsets_.end(), row) -
                    (offsets_.begin() + 1));
  }

  bool operator==(const packed&) const = default;

 private:
  std::vector<position> offsets_;
};

// The pieces of the rows [first, last), ascending, without empty ones; allocates nothing. `prefix`
// memory rows stand before row 0 of the packed axis and are seen by every segment.
class piece_list {
 public:
  piece_list(const packed& samples, row_range rows, position prefix = 0)
      : samples_(&samples), rows_(rows), prefix_(prefix) {}

  class iterator {
   public:
    iterator(const piece_list& list, position row, position segment)
        : list_(&list), row_(row), segment_(segment) {}
    piece operator*() const {
      const row_range own = list_->samples_->segment(segment_);
      const position end = std::min(own.last, list_->rows_.last), p = list_->prefix_;
      return {segment_,      row_ - list_->rows_.first,
              end - row_,    row_ - own.first,
              p,             {row_range{0, p}, row_range{own.first + p, own.last + p}}};
    }
    iterator& operator++() {
      row_ = std::min(list_->samples_->segment(segment_).last, list_->rows_.last);
      if (row_ < list_->rows_.last) segment_ = list_->samples_->segment_at(row_);
      return *this;
    }
    bool operator!=(const iterator& other) const { return row_ != other.row_; }

   private:
    const piece_list* list_;
    position row_;
    position segment_;
  };

  iterator begin() const {
    return {*this, rows_.first, rows_.rows() > 0 ? samples_->segment_at(rows_.first) : 0};
  }
  iterator end() const { return {*this, rows_.last, 0}; }
  row_range rows() const { return rows_; }
  const packed& samples() const { return *samples_; }

 private:
  const packed* samples_;
  row_range rows_;
  position prefix_;
};

}  // namespace streambp
