#include <streambp/schedule/explain_model.hpp>

#include <doctest/doctest.h>

#include <streambp/layers/attention.hpp>
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/norm.hpp>

using namespace streambp;

namespace {

// Laws of types alone: nothing here runs.
template <class Model>
constexpr model_fault fault_of(Model) {
  return fault_of_model<Model>();
}
struct pointwise {
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};
struct table : pointwise {
  static constexpr bool takes_tokens = true;
};
struct tag {
  [[maybe_unused]] static constexpr const char* name = "tag";
};
struct recurrent : pointwise {
  constexpr auto slots() const { return std::tuple{carry(tag{}, 1, 2)}; }
};
template <reach Sees>
struct reader : pointwise {
  static constexpr reach sees = Sees;
  constexpr auto slots() const { return std::tuple{memory(tag{}, 2)}; }
  void remember(auto& at, auto x) const;
  void release(auto& at, auto x, auto dx) const;
};
constexpr pointwise row_only;
template <class F>
constexpr repeat_of<F> twice(F f) {
  return {2, f};
}
template <int N>
constexpr auto in_a_row() {
  if constexpr (N == 1)
    return row_only;
  else
    return in_a_row<N - N / 2>() | in_a_row<N / 2>();
}

// repeat stands at the top level, frozen or not.
static_assert(fault_of(row_only) == model_fault::none);
static_assert(fault_of(row_only | twice(row_only) | twice(residual(row_only))) ==
              model_fault::none);
static_assert(fault_of(frozen(row_only | twice(row_only))) == model_fault::none);
static_assert(fault_of(twice(twice(row_only))) == model_fault::repeat_inside_a_block);
static_assert(fault_of(row_only | twice(row_only | frozen(twice(row_only)))) ==
              model_fault::repeat_inside_a_block);
static_assert(fault_of(residual(row_only | twice(row_only))) == model_fault::repeat_inside_a_block);
static_assert(fault_of(row_only | frozen(residual(twice(row_only)))) ==
              model_fault::repeat_inside_a_block);

// Tokens come in at the front and nowhere else.
static_assert(fault_of(table{}) == model_fault::none);
static_assert(fault_of(table{} | row_only) == model_fault::none);
static_assert(fault_of(frozen(table{} | row_only) | row_only) == model_fault::none);
static_assert(fault_of(row_only | table{}) == model_fault::tokens_not_first);
static_assert(fault_of(table{} | table{}) == model_fault::tokens_not_first);
static_assert(fault_of(residual(table{}) | row_only) == model_fault::tokens_not_first);
static_assert(fault_of(twice(table{})) == model_fault::tokens_not_first);
static_assert(fault_of(table{} | residual(row_only | frozen(table{}))) ==
              model_fault::tokens_not_first);

// 47 steps fill a section: in a residual, whose sum is one, and in the head, which ends a model.
static_assert(fault_of(residual(in_a_row<46>()) | recurrent{}) == model_fault::none);
static_assert(fault_of(residual(in_a_row<47>()) | recurrent{}) == model_fault::too_many_steps);
static_assert(fault_of(twice(residual(in_a_row<47>()))) == model_fault::too_many_steps);
static_assert(fault_of(recurrent{} | in_a_row<47>()) == model_fault::none);
static_assert(fault_of(recurrent{} | in_a_row<48>()) == model_fault::too_many_steps);
static_assert(fault_of(in_a_row<48>() | recurrent{}) == model_fault::none);
static_assert(fault_of(twice(in_a_row<60>())) == model_fault::none);

// A read that sees all waits for every row of what stands before it in its residual.
static_assert(fault_of(residual(row_only | reader<all>{} | recurrent{})) == model_fault::none);
static_assert(fault_of(recurrent{} | residual(reader<all>{})) == model_fault::none);
static_assert(fault_of(residual(recurrent{} | reader<past>{})) == model_fault::none);
static_assert(fault_of(residual(recurrent{} | reader<all>{})) ==
              model_fault::sees_all_behind_state);
static_assert(fault_of(twice(residual(reader<past>{} | row_only | reader<all>{}))) ==
              model_fault::sees_all_behind_state);
static_assert(fault_of(residual(reader<all>{} | reader<all>{})) ==
              model_fault::sees_all_behind_state);

// heads(...) stands at the end, once, behind something; each head is as long as a section may be.
static_assert(fault_of(table{} | heads(row_only, row_only)) == model_fault::none);
static_assert(fault_of(table{} | frozen(row_only | heads(row_only))) == model_fault::none);
static_assert(fault_of(heads(row_only)) == model_fault::heads_not_at_the_end);
static_assert(fault_of(heads(row_only) | row_only) == model_fault::heads_not_at_the_end);
static_assert(fault_of(row_only | heads(row_only) | row_only) == model_fault::heads_not_at_the_end);
static_assert(fault_of(row_only | heads(row_only) | heads(row_only)) ==
              model_fault::heads_not_at_the_end);
static_assert(fault_of(row_only | heads(row_only, heads(row_only))) ==
              model_fault::heads_not_at_the_end);
static_assert(fault_of(row_only | residual(heads(row_only))) == model_fault::heads_not_at_the_end);
static_assert(fault_of(row_only | twice(heads(row_only))) == model_fault::heads_not_at_the_end);
static_assert(fault_of(row_only | heads(twice(row_only))) == model_fault::repeat_inside_a_block);
static_assert(fault_of(row_only | heads(row_only, table{})) == model_fault::tokens_not_first);
static_assert(fault_of(row_only | heads(in_a_row<47>(), in_a_row<47>())) == model_fault::none);
static_assert(fault_of(row_only | heads(row_only, in_a_row<48>())) == model_fault::too_many_steps);
static_assert(fault_of(row_only | heads(row_only, recurrent{})) ==
              model_fault::head_sees_other_rows);
static_assert(fault_of(row_only | heads(residual(reader<past>{}), row_only)) ==
              model_fault::head_sees_other_rows);
static_assert(fault_of(row_only | heads(reader<all>{})) == model_fault::head_sees_other_rows);
static_assert(fault_of(recurrent{} | heads(row_only)) == model_fault::none);

}  // namespace

TEST_CASE("explain_model: the layers of a model are asked with what each of them gets") {
  const auto model = embedding(16, 8) | repeat(2, residual(rms_norm(8) | gated_recurrence(8, 4))) |
                     frozen(residual(rms_norm(8) | bidirectional_attention({.features = 8})));
  CHECK(explain_model<decltype(model)>());
}
