// Rows that somebody keeps, lent by range: asked for before use and given back after.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "../core/error.hpp"
#include "../core/view.hpp"

namespace streambp {

// What a borrower does with rows: reads them, changes them, or assigns all of them, whatever stood
// there.
enum class lent_for : unsigned char { reading, changing, assigning };

// Keeps rows in place of the arena, which has a home for them all the same: where it begins says
// which rows are meant. Rows that are lent lie where the device's primitives reach.
template <class Scalar>
class row_store {
 public:
  virtual ~row_store() = default;

  // Rows of a memory that are lent at a time to who can take them so; 0: all.
  virtual position rows_at_a_time() const = 0;

  // As they were given back last. No row is lent twice at a time.
  virtual view<Scalar> lend(view<Scalar> home, row_range rows, lent_for use) = 0;
  virtual void give_back(view<Scalar> home, row_range rows, lent_for use,
                         view<Scalar> lent) noexcept = 0;
};

// Rows as long as it lives. Without a store they are the arena's own, and nothing moves.
template <class Scalar>
class loan {
 public:
  loan() = default;
  loan(row_store<Scalar>* store, view<Scalar> home, row_range rows, lent_for use)
      : store_(store),
        home_(home),
        rows_(rows),
        use_(use),
        lent_(store ? store->lend(home, rows, use) : home.rows_in(rows)) {}
  loan(loan&& other) noexcept { *this = std::move(other); }
  loan& operator=(loan&& other) noexcept {
    std::swap(store_, other.store_);
    std::swap(home_, other.home_);
    std::swap(rows_, other.rows_);
    std::swap(use_, other.use_);
    std::swap(lent_, other.lent_);
    return *this;
  }
  ~loan() {
    if (store_) store_->give_back(home_, rows_, use_, lent_);
  }

  bool covers(row_range asked) const {
    return rows_.first <= asked.first && asked.last <= rows_.last;
  }
  view<Scalar> rows() const { return lent_; }
  // Some of them, by their numbers at home.
  view<Scalar> rows_in(row_range asked) const {
    return lent_.rows_in({asked.first - rows_.first, asked.last - rows_.first});
  }

 private:
  row_store<Scalar>* store_ = nullptr;
  view<Scalar> home_;
  row_range rows_;
  lent_for use_ = lent_for::reading;
  view<Scalar> lent_;
};

// Calls f(rows) for all rows of a home, as many at a time as the store lends.
template <class Scalar, class F>
void for_stored_rows(row_store<Scalar>* store, view<Scalar> home, lent_for use, const F& f) {
  const position some = store ? store->rows_at_a_time() : 0;
  const position step = some > 0 ? some : home.rows;
  for (position first = 0; first < home.rows; first += step) {
    const loan<Scalar> rows(store, home, {first, std::min(first + step, home.rows)}, use);
    f(rows.rows());
  }
}

// What one call of a layer has been lent, until it is done: rows of `most` memories and gradients,
// which have numbers.
template <class Scalar, std::size_t most>
class open_loans {
 public:
  // The same rows again are no second loan. Throws error when others of that number are out.
  const loan<Scalar>* find(int number, row_range rows, const char* layer) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (numbers_[i] != number) continue;
      if (all_[i].covers(rows)) return &all_[i];
      throw error(sentence(layer, ": a call asks for rows [", rows.first, ", ", rows.last,
                           ") of a memory, of which it holds a part already; ask for at[tag] or "
                           "at.d(tag) before at.own(tag) or at.d_own(tag)"));
    }
    return nullptr;
  }
  view<Scalar> add(int number, loan<Scalar> rows) {
    numbers_[count_] = number;
    all_[count_] = std::move(rows);
    return all_[count_++].rows();
  }

 private:
  std::array<loan<Scalar>, most> all_;
  std::array<int, most> numbers_{};
  std::size_t count_ = 0;
};

}  // namespace streambp
