// Rows as copies, ordered by the expert that each goes to: there, through the expert's own weights,
// and back.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "../primitives/experts.hpp"
#include "gather.hpp"
#include "product.hpp"
#include "routing.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
void order_by_expert(workers<S>&, given<S> chosen, position experts, view<S> place, view<S> first) {
  constexpr position most = position(1) << std::numeric_limits<S>::digits;
  if (chosen.rows * chosen.cols > most)
    throw shape_error(sentence("experts: a chunk of ", chosen.rows, " rows and ", chosen.cols,
                               " copies each; at most ", most,
                               " copies can be numbered, so plan smaller chunks"));
  for (position e = 0; e <= experts; ++e) first(0, e) = 0;
  for (position i = 0; i < chosen.rows; ++i)
    for (position j = 0; j < chosen.cols; ++j) first(0, position(chosen(i, j)) + 1) += 1;
  for (position e = 0; e < experts; ++e) first(0, e + 1) += first(0, e);
  for (position i = 0; i < chosen.rows; ++i)
    for (position j = 0; j < chosen.cols; ++j) place(i, j) = first(0, position(chosen(i, j)))++;
  for (position e = experts; e > 0; --e) first(0, e) = first(0, e - 1);
  first(0, 0) = 0;
}

template <class S>
void copy_to_experts(workers<S>& on, given<S> x, given<S> place, given<S> weights, view<S> copies) {
  for_rows(on, x.rows, x.cols * place.cols, [&](position i) {
    for (position j = 0; j < place.cols; ++j)
      scale_row<S>(x.row(i), weights.data ? weights(i, j) : S(1), x.cols,
                   copies.row(position(place(i, j))));
  });
}

template <class S>
void add_from_experts(workers<S>& on, given<S> copies, given<S> place, given<S> weights,
                      view<S> y) {
  for_rows(on, y.rows, y.cols * place.cols, [&](position i) {
    for (position j = 0; j < place.cols; ++j)
      add_scaled_row<S>(copies.row(position(place(i, j))), weights.data ? weights(i, j) : S(1),
                        y.cols, y.row(i));
  });
}

template <class S>
[[gnu::noinline, gnu::flatten]] S dot_of(const S* x, const S* y, position d) {
  lanes<S> total = 0;
  along<S>(d, [&](position j, auto n) { total = fma(load(x + j, n), load(y + j, n), total); });
  return sum(total);
}

template <class S>
void dot_with_experts(workers<S>& on, given<S> copies, given<S> place, given<S> dy, view<S> out) {
  for_rows(on, dy.rows, dy.cols * place.cols, [&](position i) {
    for (position j = 0; j < place.cols; ++j)
      out(i, j) = dot_of<S>(copies.row(position(place(i, j))), dy.row(i), dy.cols);
  });
}

// Calls f(expert, places of its copies) for each expert that has any.
template <class S, class F>
void for_each_expert(given<S> first, position experts, F&& f) {
  for (position e = 0; e < experts; ++e) {
    const row_range own{position(first(0, e)), position(first(0, e + 1))};
    if (own.rows() > 0) f(e, own);
  }
}

template <class S>
void project_experts(workers<S>& on, given<S> first, position experts, given<S> x, given<S> w,
                     view<S> y) {
  for_each_expert<S>(first, experts, [&](position e, row_range own) {
    project(on, x.rows_in(own), w.middle_rows(e * y.cols, y.cols), y.rows_in(own));
  });
}

template <class S>
void project_back_experts(workers<S>& on, given<S> first, position experts, given<S> dy, given<S> w,
                          view<S> dx, write how) {
  for_each_expert<S>(first, experts, [&](position e, row_range own) {
    project_back(on, dy.rows_in(own), w.middle_rows(e * dy.cols, dy.cols), dx.rows_in(own), how);
  });
}

template <class S>
void add_expert_gradients(workers<S>& on, given<S> first, position experts, given<S> chosen,
                          given<S> dy, given<S> x, view<S> dw, std::span<const position> grains) {
  for_each_expert<S>(first, experts, [&](position e, row_range own) {
    position last = own.last;
    for (std::size_t g = grains.size(); g-- > 1;) {
      const row_range grain{grains[g - 1] - grains[0], grains[g] - grains[0]};
      const position edges[] = {0, copies_of<S>(chosen, grain, e)};
      if (edges[1] == 0) continue;
      const row_range copies{last - edges[1], last};
      add_weight_gradient(on, dy.rows_in(copies), x.rows_in(copies),
                          dw.middle_rows(e * dy.cols, dy.cols), std::span<const position>(edges));
      last = copies.first;
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
