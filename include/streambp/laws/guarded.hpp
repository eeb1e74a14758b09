// Rows with poison around them, rows hidden behind poison, and rows that must stay as they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "../core/view.hpp"

namespace streambp::laws {

template <class Scalar>
void fill(view<Scalar> rows, double value) {
  if (rows.data == nullptr) return;
  for (position i = 0; i < rows.rows; ++i) std::fill_n(rows.row(i), rows.cols, Scalar(value));
}

template <class Scalar>
bool equal_bits(const Scalar* a, const Scalar* b, std::size_t n) {
  return n == 0 || std::memcmp(a, b, n * sizeof(Scalar)) == 0;
}

// A flat buffer between margins of poison.
template <class Scalar>
class guarded_buffer {
 public:
  static constexpr std::size_t margin = 64;
  explicit guarded_buffer(std::size_t n, double poison = -1234.5)
      : store_(n + 2 * margin, Scalar(poison)) {}
  template <class Value>
  explicit guarded_buffer(const std::vector<Value>& of) : guarded_buffer(of.size()) {
    std::transform(of.begin(), of.end(), span().begin(), [](Value v) { return Scalar(v); });
  }

  std::span<Scalar> span() { return {store_.data() + margin, store_.size() - 2 * margin}; }
  bool margins_untouched() const {
    const std::vector<Scalar> poison(margin, store_.front());
    return equal_bits(store_.data(), poison.data(), margin) &&
           equal_bits(store_.data() + store_.size() - margin, poison.data(), margin);
  }
  template <class Value>
  bool holds(const std::vector<Value>& values) {
    return margins_untouched() &&
           std::equal(values.begin(), values.end(), span().begin(), [](Value v, Scalar own) {
             const auto s = static_cast<Scalar>(v);
             return equal_bits(&s, &own, 1);
           });
  }

 private:
  std::vector<Scalar> store_;
};

// Stands in for the rows of a call: a copy, or poison, between margins of poison. Views without
// data stand for themselves.
template <class Scalar>
class guarded_rows {
  using value = std::remove_const_t<Scalar>;

 public:
  guarded_rows(view<Scalar> of, double poison, bool empty = false)
      : of_(of),
        buffer_(of.data ? std::size_t(of.rows * of.cols) : 0, poison),
        own_(of.data ? buffer_.span().data() : nullptr, of.rows, of.cols) {
    if (of.data == nullptr) return;
    for (position i = 0; i < of.rows && !empty; ++i) std::copy_n(of.row(i), of.cols, own_.row(i));
    before_.assign(buffer_.span().begin(), buffer_.span().end());
  }

  view<Scalar> rows() { return own_.data ? view<Scalar>(own_) : of_; }
  bool untouched() {
    return buffer_.margins_untouched() &&
           equal_bits(before_.data(), buffer_.span().data(), before_.size());
  }
  // Hands the rows back; false: something outside them was written.
  bool give_back(view<Scalar> to) {
    for (position i = 0; i < own_.rows && own_.data; ++i)
      std::copy_n(own_.row(i), own_.cols, to.row(i));
    return buffer_.margins_untouched();
  }

 private:
  view<Scalar> of_;
  guarded_buffer<value> buffer_;
  view<value> own_;
  std::vector<value> before_;
};

// Token ids are looked at by everybody.
template <>
class guarded_rows<const std::int32_t> {
 public:
  guarded_rows(std::span<const std::int32_t> ids, double, bool = false) : ids_(ids) {}
  std::span<const std::int32_t> rows() const { return ids_; }
  bool untouched() const { return true; }

 private:
  std::span<const std::int32_t> ids_;
};
template <class Scalar, class... Rest>
guarded_rows(view<Scalar>, Rest...) -> guarded_rows<Scalar>;
template <class... Rest>
guarded_rows(std::span<const std::int32_t>, Rest...) -> guarded_rows<const std::int32_t>;

// What rows held.
template <class Scalar>
class snapshot {
 public:
  explicit snapshot(view<const Scalar> of) : of_(of) {
    for (position i = 0; i < of.rows && of.data; ++i)
      before_.insert(before_.end(), of.row(i), of.row(i) + of.cols);
  }
  bool unchanged() const {
    for (position i = 0; i < of_.rows && of_.data; ++i)
      if (!equal_bits(of_.row(i), before_.data() + i * of_.cols, std::size_t(of_.cols)))
        return false;
    return true;
  }
  const Scalar* row(position i) const { return before_.data() + i * of_.cols; }

 private:
  view<const Scalar> of_;
  std::vector<Scalar> before_;
};

// All rows but those of `seen`, behind poison until restore().
template <class Scalar>
class hidden_rows {
 public:
  hidden_rows(view<Scalar> of, const std::vector<row_range>& seen, double poison)
      : of_(of), before_(of), hidden_(std::size_t(of.data ? of.rows : 0), true), poison_(poison) {
    for (const row_range& r : seen)
      for (position i = r.first; i < std::min(r.last, of.rows); ++i)
        hidden_[std::size_t(i)] = false;
    for (position i = 0; i < position(hidden_.size()); ++i)
      if (hidden_[std::size_t(i)]) fill(of_.middle_rows(i, 1), poison);
  }
  // False: a hidden row was written.
  bool restore() {
    bool untouched = true;
    const std::vector<Scalar> poison(std::size_t(of_.cols), Scalar(poison_));
    for (position i = 0; i < position(hidden_.size()); ++i) {
      if (!hidden_[std::size_t(i)]) continue;
      untouched = untouched && equal_bits(of_.row(i), poison.data(), poison.size());
      std::copy_n(before_.row(i), of_.cols, of_.row(i));
    }
    return untouched;
  }

 private:
  view<Scalar> of_;
  snapshot<Scalar> before_;
  std::vector<bool> hidden_;
  double poison_;
};

}  // namespace streambp::laws
