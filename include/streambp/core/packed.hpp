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
  position row = 0;  // first row, counted from the chunk's start
  position rows = 0;
  position start = 0;   // position of the first row in its segment
  position before = 0;  // rows that the segment sees ahead of its own: prefix memory, parent
  // Memory rows that the segment sees, in order of position: prefix, parent, its own. Own rows that
  // come after the chunk are included; an operator that sees the past stops at its own row.
  std::array<row_range, 3> seen{};

  position last() const { return row + rows; }
  // What row r of the chunk, one of the piece's, sees up to itself.
  std::array<row_range, 3> past(position r) const {
    auto ranges = seen;
    ranges[2].last = ranges[2].first + start + (r - row) + 1;
    return ranges;
  }
};

// Offsets of packed samples: segment s holds the rows [offset(s), offset(s + 1)). Empty segments
// are legal. A segment may name a parent packed before it, such as a prompt that several
// completions share: it then goes on where the parent ends.
class packed {
 public:
  packed() = default;

  // Throws shape_error unless offsets start at 0 and never descend.
  explicit packed(std::vector<position> offsets) : offsets_(std::move(offsets)) {
    if (offsets_.size() < 2)
      throw shape_error(
          sentence("packed: ", offsets_.size(),
                   " offsets describe no segment; give 0 and the end of each sample"));
    if (offsets_.front() != 0)
      throw shape_error(sentence("packed: offsets[0] is ", offsets_.front(), ", it must be 0"));
    for (std::size_t s = 1; s < offsets_.size(); ++s)
      if (offsets_[s] < offsets_[s - 1])
        throw shape_error(sentence("packed: offsets[", s, "] is ", offsets_[s],
                                   ", less than offsets[", s - 1, "] = ", offsets_[s - 1],
                                   "; offsets are running sums of lengths"));
  }

  // parents: by segment, the segment it goes on from, or -1. Throws shape_error unless a parent
  // stands before its children, holds a row, and has no parent itself.
  packed(std::vector<position> offsets, std::vector<position> parents)
      : packed(std::move(offsets)) {
    if (position(parents.size()) != segments())
      throw shape_error(
          sentence("packed: ", parents.size(), " parents for ", segments(), " segments"));
    slots_.assign(parents.size(), -1);
    for (position s = 0; s < segments(); ++s) {
      const position p = parents[std::size_t(s)];
      if (p == -1) continue;
      if (p < 0 || p >= s)
        throw shape_error(sentence("packed: segment ", s, " names parent ", p,
                                   "; a parent is packed before its children, or -1 for none"));
      if (parents[std::size_t(p)] != -1 || segment(p).rows() == 0)
        throw shape_error(
            sentence("packed: segment ", s, " names parent ", p, ", which ",
                     segment(p).rows() == 0 ? "holds no row" : "has a parent itself"));
      if (slots_[std::size_t(p)] < 0) slots_[std::size_t(p)] = parent_count_++;
      ++child_count_;
    }
    parents_ = std::move(parents);
  }

  static packed one(position tokens) { return packed({0, tokens}); }

  position tokens() const { return offsets_.empty() ? 0 : offsets_.back(); }
  position segments() const { return position(offsets_.size()) - 1; }
  row_range segment(position s) const { return {offsets_[s], offsets_[s + 1]}; }
  std::span<const position> offsets() const { return offsets_; }

  // -1: none.
  position parent(position s) const { return parents_.empty() ? -1 : parents_[std::size_t(s)]; }
  // Segments that have a parent, segments that have children, and such a one's number (-1: no
  // child).
  position child_count() const { return child_count_; }
  position parent_count() const { return parent_count_; }
  position parent_number(position s) const { return slots_.empty() ? -1 : slots_[std::size_t(s)]; }

  // The first segment that ends after `row`.
  position segment_at(position row) const {
    return position(std::upper_bound(offsets_.begin() + 1, offsets_.end(), row) -
                    (offsets_.begin() + 1));
  }

  bool operator==(const packed&) const = default;

 private:
  std::vector<position> offsets_;
  std::vector<position> parents_;  // empty: none has a parent
  std::vector<position> slots_;    // a parent's number
  position parent_count_ = 0;
  position child_count_ = 0;
};

// The pieces of the rows [first, last), ascending, without empty ones; allocates nothing. `prefix`
// memory rows stand before row 0 of the packed axis and are seen by every segment.
class piece_list {
 public:
  piece_list(const packed& samples, row_range rows, position prefix = 0)
      : samples_(&samples), rows_(rows), prefix_(prefix) {}

  // Segment s sees segment s of `other` instead of its own rows.
  piece_list seeing(const packed& other) const {
    piece_list list = *this;
    list.other_ = &other;
    return list;
  }

  class iterator {
   public:
    iterator(const piece_list& list, position row, position segment)
        : list_(&list), row_(row), segment_(segment) {}
    piece operator*() const {
      const packed& samples = *list_->samples_;
      const row_range own = samples.segment(segment_);
      const position end = std::min(own.last, list_->rows_.last), p = list_->prefix_;
      if (list_->other_ != nullptr)
        return {segment_,   row_ - list_->rows_.first,
                end - row_, row_ - own.first,
                0,          {row_range{}, row_range{}, list_->other_->segment(segment_)}};
      const position parent = samples.parent(segment_);
      const row_range above = parent < 0 ? row_range{} : samples.segment(parent);
      return {segment_,
              row_ - list_->rows_.first,
              end - row_,
              row_ - own.first,
              p + above.rows(),
              {row_range{0, p}, row_range{above.first + p, above.last + p},
               row_range{own.first + p, own.last + p}}};
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

  // Calls f(piece), last one first.
  template <class F>
  void descending(F&& f) const {
    if (rows_.rows() <= 0) return;
    for (position s = samples_->segment_at(rows_.last - 1); s >= 0; --s) {
      const row_range own = samples_->segment(s);
      if (own.last <= rows_.first) return;
      if (own.rows() > 0) f(*iterator(*this, std::max(own.first, rows_.first), s));
    }
  }

 private:
  const packed* samples_;
  row_range rows_;
  position prefix_;
  const packed* other_ = nullptr;
};

}  // namespace streambp
