// Sums of functions of places that are made of few straight pieces, without asking for each place.
#pragma once

#include "../core/big_count.hpp"

namespace streambp {

namespace detail {

template <class F>
big_count sum_of_concave(position first, position last, big_count at_first, big_count at_last,
                         const F& f) {
  const position steps = last - first, middle = first + steps / 2;
  if (steps < 2) return steps == 0 ? at_first : at_first + at_last;
  // A concave function that meets its chord in between is the chord.
  const big_count at_middle = f(middle);
  if ((at_middle - at_first) * steps == (at_last - at_first) * (middle - first))
    return (at_first + at_last) * (steps + 1) / 2;
  return sum_of_concave(first, middle, at_first, at_middle, f) +
         sum_of_concave(middle, last, at_middle, at_last, f) - at_middle;
}

}  // namespace detail

// f(first) + ... + f(last), which f gives as counts. Requires f concave: no step from one place to
// the next is larger than the one before. Asks about 2 log2 of the places for each bend.
template <class F>
big_count sum_of_concave(position first, position last, const F& f) {
  return detail::sum_of_concave(first, last, f(first), f(last), f);
}

}  // namespace streambp
