#include <streambp/schedule/section.hpp>

#include <doctest/doctest.h>

#include <streambp/layers/activation.hpp>
#include <streambp/layers/attention.hpp>
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/gated_mlp.hpp>
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/linear.hpp>
#include <streambp/layers/norm.hpp>

using namespace streambp;

namespace {

const auto attend = residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2}));
const auto attend_all =
    residual(rms_norm(8) | bidirectional_attention({.features = 8, .heads = 2}));
const auto recur = residual(rms_norm(8) | gated_recurrence(8, 4));
const auto mlp = residual(rms_norm(8) | swiglu(8, 12));

template <class Split>
using head_of = std::tuple_element_t<0, typename Split::head_types>;
template <class Model>
split_model<Model> split_of(const Model&) {
  return {};
}

template <class Split, int I>
using trunk_section = std::tuple_element_t<I, typename Split::trunk_types>;

// part and element of each section type of the trunk.
template <class Split>
constexpr auto parts() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{trunk_section<Split, int(I)>::part...};
  }
  (std::make_index_sequence<std::size_t(Split::trunk_count)>{});
}
template <class Split>
constexpr auto elements() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{trunk_section<Split, int(I)>::element...};
  }
  (std::make_index_sequence<std::size_t(Split::trunk_count)>{});
}

}  // namespace

TEST_CASE("a language model: trailing layers that see their own row are the head") {
  using split =
      decltype(split_of(embedding(19, 8) | repeat(3, attend | mlp) | rms_norm(8) | linear(8, 19)));
  static_assert(split::element_count == 4 && split::trunk_elements == 2);
  static_assert(parts<split>() == std::array{half::whole, half::whole, half::whole});
  static_assert(elements<split>() == std::array{0, 1, 1});
  static_assert(head_of<split>::steps.size == 2);
  static_assert(head_of<split>::steps.split() == dependency{});
}

TEST_CASE("sections: every item of a block, and two for a read that sees all") {
  using split = decltype(split_of(bidirectional_attention({.features = 8, .heads = 2}) |
                                  repeat(2, recur | attend_all | mlp) | attend | linear(8, 5)));
  static_assert(parts<split>() == std::array{half::remember, half::read, half::whole,
                                             half::remember, half::read, half::whole, half::whole});
  static_assert(elements<split>() == std::array{0, 0, 1, 1, 1, 1, 2});
  static_assert(head_of<split>::steps.size == 1);
}

TEST_CASE(
    "the head: a repeated block and tokens stay in the trunk, and one section does at least") {
  using repeated = decltype(split_of(linear(8, 8) | repeat(2, mlp)));
  static_assert(repeated::trunk_elements == 2 && head_of<repeated>::steps.size == 0);
  using rows = decltype(split_of(linear(8, 8) | gelu() | linear(8, 3)));
  static_assert(rows::trunk_elements == 1 && head_of<rows>::steps.size == 2);
  using tokens = decltype(split_of(embedding(5, 8)));
  static_assert(tokens::trunk_count == 1 && head_of<tokens>::steps.size == 0);
  using stateful = decltype(split_of(attend | linear(8, 8) | recur));
  static_assert(stateful::trunk_elements == 3);
  using residual_head = decltype(split_of(attend | mlp | rms_norm(8) | linear(8, 3)));
  static_assert(residual_head::trunk_elements == 1 && head_of<residual_head>::steps.size == 5);
}

TEST_CASE("frozen(...) is handed down to each section") {
  using split = decltype(split_of(frozen(embedding(19, 8) | repeat(3, attend | mlp)) | mlp |
                                  frozen(rms_norm(8)) | linear(8, 19)));
  static_assert(split::trunk_elements == 2);
  static_assert(split::trunk_count == 3);
  static_assert(!trunk_section<split, 0>::steps.trains());
  static_assert(!trunk_section<split, 1>::steps.trains());
  static_assert(!trunk_section<split, 2>::steps.trains());
  static_assert(head_of<split>::steps.operators[0].trains);   // the mlp's norm
  static_assert(!head_of<split>::steps.operators[2].trains);  // the frozen norm
  static_assert(head_of<split>::steps.operators[3].trains);
}

TEST_CASE("count_of, for_each_index, with_index") {
  CHECK(count_of(repeat(7, mlp)) == 7);
  CHECK(count_of(mlp) == 1);
  std::vector<int> seen;
  for_each_index<3>([&](auto i) { seen.push_back(i); });
  CHECK(seen == std::vector{0, 1, 2});
  seen.clear();
  with_index<3>(1, [&](auto i) {
    static_assert(decltype(i)::value < 3);
    seen.push_back(i);
  });
  with_index<3>(3, [&](auto i) { seen.push_back(i); });
  CHECK(seen == std::vector{1});
}
