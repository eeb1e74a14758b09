// A store whose rows lie elsewhere: what it lends are copies, and whoever reads or writes rows that
// he was not lent, or that he gave back, reads poison or writes in vain.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <span>
#include <streambp/core/error.hpp>
#include <streambp/engine/row_store.hpp>
#include <vector>

namespace streambp {

template <class Scalar>
class elsewhere final : public row_store<Scalar> {
 public:
  // `block`: the arena that the homes lie in.
  elsewhere(std::span<const std::byte> block, position rows_at_a_time)
      : block_(block), at_a_time_(rows_at_a_time), kept_(block.size() / sizeof(Scalar), poison) {}

  position rows_at_a_time() const override { return at_a_time_; }

  view<Scalar> lend(view<Scalar> home, row_range rows, lent_for use) override {
    if (rows.first < 0 || rows.last > home.rows || rows.first > rows.last)
      throw error(sentence("elsewhere: rows [", rows.first, ", ", rows.last, ") of ", home.rows));
    for (const loan_of& o : open_)
      if (o.home == home.data && o.rows.first < rows.last && rows.first < o.rows.last)
        throw error(sentence("elsewhere: rows [", rows.first, ", ", rows.last, ") while [",
                             o.rows.first, ", ", o.rows.last, ") are lent"));
    ++loans;
    most_rows = std::max(most_rows, rows.rows());
    open_.push_back({home.data, rows});
    if (buffers_.size() > 100) buffers_.pop_front();  // poisoned for long enough
    const position stride = home.cols + 3;
    buffers_.emplace_back(std::size_t(rows.rows() * stride) + 1, poison);
    const view<Scalar> lent(buffers_.back().data(), rows.rows(), home.cols, stride);
    for (position i = 0; i < lent.rows; ++i) {
      std::fill_n(home.row(rows.first + i), home.cols, poison);
      if (use != lent_for::assigning)
        std::copy_n(kept(home, rows.first + i), home.cols, lent.row(i));
    }
    return lent;
  }
  void give_back(view<Scalar> home, row_range rows, lent_for use,
                 view<Scalar> lent) noexcept override {
    const auto was = std::find_if(open_.begin(), open_.end(), [&](const loan_of& o) {
      return o.home == home.data && o.rows == rows;
    });
    if (was == open_.end()) return void(++faults);
    open_.erase(was);
    for (position i = 0; i < lent.rows; ++i) {
      Scalar* const own = kept(home, rows.first + i);
      if (use != lent_for::reading)
        std::copy_n(lent.row(i), home.cols, own);
      else if (!std::equal(own, own + home.cols, lent.row(i),
                           [](Scalar a, Scalar b) { return a == b || (a != a && b != b); }))
        ++faults;
      std::fill_n(lent.row(i), home.cols, poison);
    }
  }

  std::size_t open() const { return open_.size(); }

  position loans = 0, most_rows = 0;
  int faults = 0;  // rows that were changed though lent to be read, given back twice

 private:
  static constexpr Scalar poison = std::numeric_limits<Scalar>::quiet_NaN();
  struct loan_of {
    const Scalar* home;
    row_range rows;
  };

  Scalar* kept(view<Scalar> home, position row) {
    return kept_.data() + (home.row(row) - reinterpret_cast<const Scalar*>(block_.data()));
  }

  std::span<const std::byte> block_;
  position at_a_time_;
  std::vector<Scalar> kept_;  // what stands at home, elsewhere
  std::vector<loan_of> open_;
  std::deque<std::vector<Scalar>> buffers_;
};

}  // namespace streambp
