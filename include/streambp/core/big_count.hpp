// A count beyond 64 bits: FLOPs, and pairs of rows that attention compares.
#pragma once

#include <compare>
#include <concepts>
#include <ostream>

#include "position.hpp"

namespace streambp {

// 2^40 tokens squared, times heads and widths, pass 2^63 by far. 127 bits and a sign; nothing
// checks that they suffice.
class big_count {
 public:
  constexpr big_count() = default;
  template <std::integral T>
  constexpr big_count(T n) : n_(n) {}

  constexpr explicit operator double() const { return double(n_); }
  // Requires a count of at most 63 bits.
  constexpr explicit operator position() const { return position(n_); }

  constexpr big_count& operator+=(big_count b) { return n_ += b.n_, *this; }
  constexpr big_count& operator-=(big_count b) { return n_ -= b.n_, *this; }
  constexpr big_count& operator*=(big_count b) { return n_ *= b.n_, *this; }
  constexpr big_count& operator/=(big_count b) { return n_ /= b.n_, *this; }
  friend constexpr big_count operator+(big_count a, big_count b) { return a += b; }
  friend constexpr big_count operator-(big_count a, big_count b) { return a -= b; }
  friend constexpr big_count operator*(big_count a, big_count b) { return a *= b; }
  friend constexpr big_count operator/(big_count a, big_count b) { return a /= b; }
  friend constexpr bool operator==(big_count a, big_count b) { return a.n_ == b.n_; }
  friend constexpr auto operator<=>(big_count a, big_count b) { return a.n_ <=> b.n_; }

  friend std::ostream& operator<<(std::ostream& out, big_count b) {
    char text[41] = {};  // 2^127 has 39 digits
    char* first = text + 40;
    const bool negative = b.n_ < 0;
    do *--first = char('0' + (negative ? -int(b.n_ % 10) : int(b.n_ % 10)));
    while ((b.n_ /= 10) != 0);
    if (negative) *--first = '-';
    return out << first;
  }

 private:
  __extension__ typedef __int128 number;
  number n_ = 0;
};

}  // namespace streambp
