#include <streambp/model/explain.hpp>

#include <doctest/doctest.h>

#include <streambp/engine/site.hpp>
#include <streambp/layers/activation.hpp>
#include <streambp/layers/attention.hpp>
#include <streambp/layers/dropout.hpp>
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/gated_mlp.hpp>
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/linear.hpp>
#include <streambp/layers/norm.hpp>
#include <streambp/losses/cross_entropy.hpp>
#include <streambp/losses/preference.hpp>

using namespace streambp;

namespace {

struct k_tag {
  static constexpr const char* name = "k";
};
struct s_tag {
  static constexpr const char* name = "s";
};
struct silent_tag {};

struct pointwise {
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

template <class... Slot>
struct keeps : pointwise {
  std::tuple<Slot...> slots() const { return {}; }
};
template <reach Sees, class... Slot>
struct keeps_and_sees : keeps<Slot...> {
  static constexpr reach sees = Sees;
};
template <class Base>
struct remembers : Base {
  void remember(auto& at, auto x) const;
  void release(auto& at, auto x, auto dx) const;
};

using k = slot<k_tag, slot_kind::memory>;
using k_total = slot<k_tag, slot_kind::total>;
using k_context = slot<k_tag, slot_kind::context>;
using s = slot<s_tag, slot_kind::carry>;
using h = slot<k_tag, slot_kind::saved>;

// Which claims are true of which slots.
static_assert(fault_of_layer<pointwise>() == layer_fault::none);
static_assert(fault_of_layer<keeps<h>>() == layer_fault::none);
static_assert(fault_of_layer<keeps<s>>() == layer_fault::none);
static_assert(fault_of_layer<keeps_and_sees<past, s>>() == layer_fault::none);
static_assert(fault_of_layer<remembers<keeps_and_sees<past, k>>>() == layer_fault::none);
static_assert(fault_of_layer<remembers<keeps_and_sees<past, k, s>>>() == layer_fault::none);
static_assert(fault_of_layer<remembers<keeps_and_sees<all, k>>>() == layer_fault::none);
static_assert(fault_of_layer<remembers<keeps_and_sees<all, k_total>>>() == layer_fault::none);

static_assert(fault_of_layer<remembers<keeps<k>>>() == layer_fault::memory_without_sees);
static_assert(fault_of_layer<remembers<keeps<k_total>>>() == layer_fault::memory_without_sees);
static_assert(fault_of_layer<keeps_and_sees<row, s>>() == layer_fault::sees_row_with_state);
static_assert(fault_of_layer<remembers<keeps_and_sees<row, k>>>() ==
              layer_fault::sees_row_with_state);
static_assert(fault_of_layer<keeps_and_sees<past, h>>() == layer_fault::sees_past_without_state);
static_assert(fault_of_layer<keeps_and_sees<past, k_context>>() ==
              layer_fault::sees_past_without_state);
static_assert(fault_of_layer<keeps_and_sees<all, s>>() == layer_fault::sees_all_without_memory);
static_assert(fault_of_layer<remembers<keeps_and_sees<all, k, s>>>() ==
              layer_fault::sees_all_with_carry);
static_assert(fault_of_layer<remembers<keeps_and_sees<past, k_total>>>() ==
              layer_fault::total_without_all);

// Tags: of any kind, next to each other or not.
static_assert(fault_of_layer<keeps<slot<silent_tag, slot_kind::scratch>>>() ==
              layer_fault::nameless_tag);
static_assert(fault_of_layer<keeps<h, slot<k_tag, slot_kind::scratch>>>() ==
              layer_fault::repeated_tag);
static_assert(fault_of_layer<keeps<h, s, slot<k_tag, slot_kind::parameter>>>() ==
              layer_fault::repeated_tag);

// Functions: of the right form under a type's own names, whatever else the type is.
struct short_backward {
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto dy, auto dx) const;
};
struct final_one final : pointwise {};
struct final_and_short final : short_backward {};
struct private_backward : pointwise {
 private:
  using pointwise::backward;
};
struct data_called_features : pointwise {
  position features = 8;
};
// Asks `at` for what it needs instead of taking anything.
struct picky {
  template <class At>
  requires requires(At& at, k_tag tag) {
    { at.rows() } -> std::same_as<position>;
    { at[tag] } -> std::same_as<view<typename At::scalar>>;
  }
  void forward(At&, view<const typename At::scalar>, view<typename At::scalar>) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};
// What it wants to write is there to be read.
struct writes_dy : pointwise {
  template <class S>
  void backward(auto& at, view<const S> x, view<const S> y, view<S> dy, view<S> dx) const;
};
static_assert(fault_of_layer<short_backward>() == layer_fault::backward_of_other_form);
static_assert(fault_of_layer<final_one>() == layer_fault::none);
static_assert(fault_of_layer<final_and_short>() == layer_fault::no_backward);  // names are not seen
static_assert(fault_of_layer<private_backward>() == layer_fault::backward_of_other_form);
static_assert(fault_of_layer<data_called_features>() == layer_fault::none);
static_assert(fault_of_layer<picky>() == layer_fault::none);
static_assert(fault_of_layer<writes_dy>() == layer_fault::backward_of_other_form);

// Types that nobody meant to be a layer.
static_assert(fault_of_layer<int>() == layer_fault::not_declared);
static_assert(fault_of_layer<void (*)()>() == layer_fault::not_declared);
static_assert(fault_of_layer<std::tuple<int>>() == layer_fault::not_declared);
static_assert(fault_of_layer<cross_entropy>() == layer_fault::not_declared);
static_assert(!composable<int> && !composable<k_tag*> && composable<pointwise> &&
              composable<linear>);

// What the library ships.
template <class... L>
constexpr bool all_explained() {
  return (explain_layer<L>() && ...);
}
static_assert(
    all_explained<activate, attention<past>, attention<all>, dropout_layer, embedding, gated_mlp,
                  gated_recurrence, linear, tied_linear, rms_norm, layer_norm>());
static_assert(explain_loss<cross_entropy>() && explain_loss<const direct_preference>());

struct own_loss {
  token_term term(const row_statistics&, const label_place&) const;
};
struct narrow_loss {
  token_term term(row_statistics&, const label_place&) const;  // would change what it is given
};
struct mean_of_samples : own_loss {
  over average = over::samples;
};
static_assert(fault_of_loss<own_loss>() == loss_fault::none);
static_assert(fault_of_loss<mean_of_samples>() == loss_fault::none);
static_assert(fault_of_loss<narrow_loss>() == loss_fault::term_of_other_form);
static_assert(fault_of_loss<linear>() == loss_fault::not_declared);

// A layer's whole view of itself: what it may use of `at` in the engine, the probe has.
template <class At>
concept sees_itself = requires(const At& at, k_tag kept, s_tag carried,
                               view<typename At::scalar> v) {
  at.on;
  { at.chunk.rows } -> std::convertible_to<row_range>;
  { at.chunk.tile } -> std::convertible_to<position>;
  { at.chunk.sample_ids } -> std::convertible_to<std::span<const std::uint64_t>>;
  { at.chunk.seed + at.chunk.step + at.instance } -> std::same_as<std::uint64_t>;
  {
    at.wants_output&& at.keeps_outputs&& at.restored&& at.saves&& at.tallies
    } -> std::same_as<bool>;
  { at.pieces() } -> std::same_as<piece_list>;
  { at.context_pieces() } -> std::same_as<piece_list>;
  { at.grains() } -> std::same_as<std::span<const position>>;
  { at.rows() } -> std::same_as<position>;
  { at[kept] } -> std::same_as<view<typename At::scalar>>;
  { at.d(kept) } -> std::same_as<view<typename At::scalar>>;
  { at.trains(kept) } -> std::same_as<bool>;
  { at.states(carried) } -> std::same_as<carry_rows<typename At::scalar>>;
  { at.own(v) } -> std::same_as<view<typename At::scalar>>;
  { at.own(kept) } -> std::same_as<view<typename At::scalar>>;
  { at.d_own(kept) } -> std::same_as<view<typename At::scalar>>;
  { at.own_context(v) } -> std::same_as<view<typename At::scalar>>;
  { at.own_context(kept) } -> std::same_as<view<typename At::scalar>>;
  { at.d_own_context(kept) } -> std::same_as<view<typename At::scalar>>;
  at.walk(attention_shape{}, at.pieces(), kept, kept, [](auto&&...) {});
  at.walk_back(attention_shape{}, at.pieces(), kept, kept, [](auto&&...) {});
};
static_assert(sees_itself<site_probe>);
static_assert(sees_itself<site<probe_device, keeps<h, s>>>);

}  // namespace

// Final, and its forward is something else.
struct foreign final {
  double slope;
  double forward(double x) const { return slope * x; }
};
struct foreign_layer {
  const foreign& module;
  position features(position in) const { return in + position(module.slope); }
  auto slots(position in) const { return std::tuple{carry(s_tag{}, 1, in)}; }
  void forward(auto& at, auto, auto) const { at += module.slope; }
  void backward(auto& at, auto, auto, auto, auto) const { at -= module.slope; }
};
template <>
struct streambp::layer_traits<foreign> : adapted_traits<foreign, foreign_layer> {};

static_assert(fault_of_layer<foreign_layer>() == layer_fault::none);
static_assert(fault_of_layer<foreign>() == layer_fault::none && composable<foreign>);
static_assert(layer_traits<foreign>::split == dependency{past, true});

TEST_CASE("explain: an adapter speaks for a type that cannot be edited") {
  const foreign given{3};
  CHECK(layer_traits<foreign>::features(given, 4) == 7);
  CHECK(std::get<0>(layer_traits<foreign>::slots(given, 4)).cols == 4);
  double called = 0;
  layer_traits<foreign>::forward(given, called, 0, 0);
  CHECK(called == 3);
  layer_traits<foreign>::backward(given, called, 0, 0, 0, 0);
  layer_traits<foreign>::backward(given, called, 0, 0, 0, 0);
  CHECK(called == -3);
}

TEST_CASE("explain: a chain with an adapted type is a chain like any other") {
  const auto chain = rms_norm(4) | foreign{2} | foreign{5};
  CHECK(chain.second.slope == 5);
  static_assert(std::is_same_v<std::decay_t<decltype(chain)>,
                               sequential<sequential<rms_norm, foreign>, foreign>>);
}
