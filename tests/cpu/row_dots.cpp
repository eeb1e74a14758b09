#include <streambp/cpu/row_dots.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

template <class S>
struct four_rows {
  const S* x[4];
  S* y[4];
  four_rows(const guarded<S>& from, guarded<S>& to, position first) {
    for (position r = 0; r < 4 && first + r < (*from).rows; ++r) {
      x[r] = (*from).row(first + r);
      y[r] = (*to).row(first + r);
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("row dots: values, and a row's bits beside any others", S, float, double) {
  for (const position in : widths)
    for (const position out : {1, 5, 66}) {
      const guarded<S> w(out, in, 1, 1., 0.), x(4, in, 2, 1., 0.), moved(4, in, 2, 1., 0., 5);
      guarded<S> alone(4, out, 3, 1., 0.), together = alone;
      for (position r = 0; r < 4; ++r) {
        four_rows<S> one(x, alone, r);
        add_row_dots<1>(view<const S>(*w), one.x, one.y);
      }
      const guarded<S> before(4, out, 3, 1., 0.);
      CHECK(error_of(*alone, [&](position r, position i) {
              double sum = double(before(r, i));
              for (position k = 0; k < in; ++k) sum += double(w(i, k)) * double(x(r, k));
              return sum;
            }) < (sizeof(S) == 4 ? 1e-5 : 1e-13));
      for (const int first : {2, 3, 4}) {
        guarded<S> some = before;
        four_rows<S> group(moved, some, 0);
        with_count(first, [&](auto m) { add_row_dots<m>(view<const S>(*w), group.x, group.y); });
        four_rows<S> rest(moved, some, first);
        with_count(4 - first, [&](auto m) { add_row_dots<m>(view<const S>(*w), rest.x, rest.y); });
        CHECK(same_bits(some, alone));
        CHECK(some.intact());
      }
    }
}

TEST_CASE_TEMPLATE("row mixes: values, and a row's bits beside any others", S, float, double) {
  for (const position in : {1, 7, 200})
    for (const position out : widths) {
      const guarded<S> w(in, out, 1, 1., 0.), x(4, in, 2, 1., 0.), moved(4, in, 2, 1., 0., 5);
      const guarded<S> before(4, out, 3, 1., 0.);
      guarded<S> alone = before;
      for (position r = 0; r < 4; ++r) {
        four_rows<S> one(x, alone, r);
        add_row_mix<1>(view<const S>(*w), one.x, one.y);
      }
      CHECK(error_of(*alone, [&](position r, position j) {
              double sum = double(before(r, j));
              for (position i = 0; i < in; ++i) sum += double(x(r, i)) * double(w(i, j));
              return sum;
            }) < (sizeof(S) == 4 ? 1e-5 : 1e-13));
      for (const int first : {2, 3, 4}) {
        guarded<S> some = before;
        four_rows<S> group(moved, some, 0);
        with_count(first, [&](auto m) { add_row_mix<m>(view<const S>(*w), group.x, group.y); });
        four_rows<S> rest(moved, some, first);
        with_count(4 - first, [&](auto m) { add_row_mix<m>(view<const S>(*w), rest.x, rest.y); });
        CHECK(same_bits(some, alone));
        CHECK(some.intact());
      }
    }
}
