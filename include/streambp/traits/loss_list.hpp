// A step's losses: one, or one for each output head.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "loss_traits.hpp"

namespace streambp {

template <class... Loss>
struct losses_of {
  std::tuple<Loss...> each;
};

// Of a model that ends in heads(...), in the heads' order.
template <class... Loss>
constexpr losses_of<Loss...> losses(Loss... each) {
  static_assert(sizeof...(Loss) > 0 && sizeof...(Loss) <= 64,
                "losses(...) takes one loss for each head, of 1 to 64");
  return {{std::move(each)...}};
}

// By head, whether its loss couples: needs sums of all tokens, or all rows, before it has a
// gradient.
class coupled_heads {
 public:
  constexpr coupled_heads() = default;
  constexpr coupled_heads(bool first) : all_(first), of_tokens_(first) {}
  // of_tokens: it adds up sums of tokens, and asks for the statistics of each twice.
  constexpr void add(position head, bool of_tokens) {
    all_ |= std::uint64_t(1) << head;
    of_tokens_ |= std::uint64_t(of_tokens) << head;
  }
  constexpr bool any() const { return all_ != 0; }
  constexpr bool operator[](position head) const { return (all_ >> head & 1) != 0; }
  constexpr bool of_tokens(position head) const { return (of_tokens_ >> head & 1) != 0; }

 private:
  std::uint64_t all_ = 0, of_tokens_ = 0;
};

// One loss is a list of one.
template <class Loss>
struct loss_list {
  using types = std::tuple<Loss>;
  static types of(Loss loss) { return types(std::move(loss)); }
};
template <class... Loss>
struct loss_list<losses_of<Loss...>> {
  using types = std::tuple<Loss...>;
  static types of(losses_of<Loss...> all) { return std::move(all.each); }
};

template <class Loss>
inline constexpr int loss_count = int(std::tuple_size_v<typename loss_list<Loss>::types>);

// Whether some head's loss is of tokens.
template <class Loss>
inline constexpr bool scores_labels = !loss_traits<Loss>::sees_rows;
template <class... Loss>
inline constexpr bool scores_labels<losses_of<Loss...>> = (!loss_traits<Loss>::sees_rows || ...);

template <class Loss>
constexpr coupled_heads couples_of() {
  coupled_heads all;
  [&]<class... L>(std::type_identity<std::tuple<L...>>) {
    position head = 0;
    ((loss_traits<L>::couples ? all.add(head, !loss_traits<L>::sees_rows) : void(), ++head), ...);
  }(std::type_identity<typename loss_list<Loss>::types>{});
  return all;
}

}  // namespace streambp
