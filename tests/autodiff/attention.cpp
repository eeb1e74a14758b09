// Layers that read memory.
#include "beside.hpp"

namespace streambp {
namespace {

template <reach Sees>
struct derived_attention {
  using by_hand = attention<Sees>;
  static constexpr auto sees = Sees;
  position features_, heads, kv_heads;
  std::vector<double> frequencies;
  bool odd = false;  // keys are normalised, queries are read a second time, values gate themselves

  auto slots() const {
    const position width = features_ / heads;
    return std::tuple{parameter(by_hand::wq, features_, features_, zeros),
                      parameter(by_hand::wk, kv_heads * width, features_, zeros),
                      parameter(by_hand::wv, kv_heads * width, features_, zeros),
                      parameter(by_hand::wo, features_, features_, zeros),
                      memory(by_hand::k, kv_heads * width),
                      memory(by_hand::v, kv_heads * width)};
  }
  void remember(auto& at, auto x) const {
    const auto k = matmul(x, at[by_hand::wk]), v = matmul(x, at[by_hand::wv]);
    at.write(by_hand::k, odd ? rms_normalise(k) : rotate(k, kv_heads, frequencies));
    at.write(by_hand::v, odd ? v * sigmoid(v) : v);
  }
  auto forward(auto& at, auto x) const {
    const auto q = matmul(x, at[by_hand::wq]);
    if (!odd)
      return matmul(attend(rotate(q, heads, frequencies), at[by_hand::k], at[by_hand::v],
                           {.heads = heads, .kv_heads = kv_heads}),
                    at[by_hand::wo]);
    const auto o =
        attend(q, at[by_hand::k], at[by_hand::v],
               {.heads = heads, .kv_heads = kv_heads, .scale = 0.6, .softcap = 4, .window = 7});
    return matmul(o * silu(q) + x, at[by_hand::wo]) + o;
  }
};

// Queries that are columns of a wider product, keys that are read through two layers.
struct sliced_attention {
  static constexpr tag<"w"> w{};
  static constexpr tag<"k"> k{};
  static constexpr auto sees = past;
  auto slots(position in) const {
    return std::tuple{parameter(w, 2 * in, in, zeros), memory(k, in)};
  }
  void remember(auto& at, auto x) const { at.write(k, x + tanh(x)); }
  auto forward(auto& at, auto x) const {
    const auto h = matmul(x, at[w]);
    return attend(slice(h, 0, x.cols()), at[k], at[k], {.heads = 2}) * slice(h, x.cols(), x.cols());
  }
};

struct shared_gain : derived_attention<past> {
  static constexpr tag<"gain"> gain{};
  auto slots() const {
    return std::tuple_cat(derived_attention<past>::slots(),
                          std::tuple{parameter(gain, 1, features_, ones)});
  }
  void remember(auto& at, auto x) const {
    at.write(by_hand::k, matmul(x * at[gain], at[by_hand::wk]));
    at.write(by_hand::v, matmul(x * at[gain], at[by_hand::wv]));
  }
  auto forward(auto& at, auto x) const {
    return attend(x * at[gain], at[by_hand::k], at[by_hand::v],
                  {.heads = heads, .kv_heads = kv_heads});
  }
};

template <reach Sees>
derived_attention<Sees> small(position features, bool odd = false) {
  return {features, 4, 2, autodiff::rotary_frequencies(1e4, features / 4), odd};
}

TEST_CASE("attention keeps the laws, whatever it does to queries, keys and values") {
  CHECK(laws::hold(small<past>(16), laws::rows(37, 16)));
  CHECK(laws::hold(small<all>(16), laws::rows(37, 16)));
  CHECK(laws::hold(small<past>(16, true), laws::rows(37, 16)));
  CHECK(laws::hold(sliced_attention{}, laws::rows(37, 6)));
}

// Softmax of one score is 1: no number of the score's gradient is left to round.
TEST_CASE("a row that attends to one key has no gradient of its score") {
  const auto check = [](auto scalar) {
    using layer = derived_attention<past>;
    laws::setting s = laws::rows(37, 16);
    s.samples = packed({0, 1, 2, 2, 3});
    laws::engine_subject<decltype(scalar), layer, laws::functional<decltype(scalar)>> engine(
        small<past>(16), {}, s);
    laws::subject& of = engine;
    laws::given data = laws::data_for(of, s, 0);
    data.initial.clear();
    const laws::outcome o = of.run(of.streamed(s.samples, 0))->step(data);
    for (const laws::tensor& t : o.tensors)
      if (t.kind == laws::tensor_kind::parameter) {
        CAPTURE(t.name);
        const bool of_score = t.name.ends_with("wq") || t.name.ends_with("wk");
        CHECK((t.largest() == 0) == of_score);
      }
  };
  check(0.0);
  check(0.0f);
}

TEST_CASE("attention gives what is written by hand") {
  // Rows in place of turning them in place: q and k before they turn, or their gradient.
  const std::size_t more = 16 * 2 * 24 * 8;
  const attention_options o{.features = 24, .heads = 4, .kv_heads = 2, .rotary = 1e4};
  same_as_by_hand(small<past>(24), causal_attention(o), 24, more);
  same_as_by_hand(small<all>(24), bidirectional_attention(o), 24, more);
}

TEST_CASE("a parameter that remember and forward read is refused") {
  CHECK_THROWS_WITH_AS(
      layer_traits<shared_gain>::slots(shared_gain{small<past>(16)}, 16),
      "layer: remember and forward read the same parameter, slot 6; what both need, "
      "such as a norm, belongs into a layer of its own before this one",
      shape_error);
}

struct no_values : derived_attention<past> {
  void remember(auto& at, auto x) const { at.write(by_hand::k, matmul(x, at[by_hand::wk])); }
};
struct two_keys : derived_attention<past> {
  void remember(auto& at, auto x) const {
    at.write(by_hand::k, matmul(x, at[by_hand::wk]));
    at.write(by_hand::k, matmul(x, at[by_hand::wv]));
  }
};

struct wide_keys : derived_attention<past> {
  void remember(auto& at, auto x) const {
    at.write(by_hand::k, matmul(x, at[by_hand::wk]));
    at.write(by_hand::v, concatenate(x, x));
  }
};

TEST_CASE("what is written to a memory is as wide as it") {
  CHECK_THROWS_WITH_AS(layer_traits<wide_keys>::slots(wide_keys{small<past>(16)}, 16),
                       "layer: at.write: rows of 32 columns into v of 8; they are alike",
                       shape_error);
}

struct two_reads : derived_attention<past> {
  auto forward(auto& at, auto x) const {
    const auto q = matmul(x, at[by_hand::wq]);
    return attend(q, at[by_hand::k], at[by_hand::v], {.heads = heads, .kv_heads = kv_heads}) +
           attend(q * q, at[by_hand::k], at[by_hand::v], {.heads = heads, .kv_heads = kv_heads});
  }
};

TEST_CASE("a memory has one reader, or the order of its gradient's sum would be the chunks'") {
  CHECK_THROWS_WITH_AS(layer_traits<two_reads>::slots(two_reads{small<past>(16)}, 16),
                       "layer: attend: slot 4 of the layer is read twice; write its rows to a "
                       "second memory, which the second read takes",
                       shape_error);
}

TEST_CASE("every memory is written once") {
  CHECK_THROWS_WITH_AS(
      layer_traits<no_values>::slots(no_values{small<past>(16)}, 16),
      "layer: remember writes 1 of 2 memories; give each its rows by at.write(tag, rows)",
      shape_error);
  CHECK_THROWS_WITH_AS(
      layer_traits<two_keys>::slots(two_keys{small<past>(16)}, 16),
      "layer: autodiff: slot 4 of the layer is written twice; give each memory and each "
      "carry a slot of its own",
      shape_error);
}

}  // namespace
}  // namespace streambp
