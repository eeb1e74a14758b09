// What is wrong with a loss, if anything, as a value.
#pragma once

#include <concepts>

#include "../core/view.hpp"
#include "../traits/loss_traits.hpp"
#include "../traits/named.hpp"
#include "../traits/probe.hpp"

namespace streambp {

enum class loss_fault : unsigned char {
  none,
  not_declared,
  two_kinds,
  couple_of_other_form,
  couple_without_summary,
  summary_of_other_form,
  summary_without_couple,
  term_of_other_form,
  rows_of_other_form,
  rows_of_the_host,
  average_of_other_form
};

namespace detail {

template <class L>
concept has_term = requires(const L& l, const row_statistics& s, const label_place& t) {
  { l.term(s, t) } -> std::convertible_to<token_term>;
};
template <class L>
concept has_summary = requires(const L& l, const row_statistics& s, const label_place& t) {
  { l.summary(s, t) } -> std::convertible_to<token_term>;
};
template <class L>
concept has_couple = requires(const L& l, std::span<const double> sums, std::span<double> slopes) {
  { l.couple(sums, slopes) } -> std::convertible_to<double>;
};
template <class L, class Device>
concept has_rows = requires(const L& l, Device& on, position first,
                            view<typename Device::scalar> y) {
  { l.rows(on, first, y) } -> std::convertible_to<double>;
};

}  // namespace detail

// The first fault of L on a Device. A specialization of loss_traits is trusted.
template <class L, class Device = probe_device>
constexpr loss_fault fault_of_loss() {
  using enum loss_fault;
  constexpr bool term = names_term<L> || detail::has_term<L>,
                 rows = names_rows<L> || detail::has_rows<L, Device>,
                 summary = names_summary<L> || detail::has_summary<L>,
                 couple = names_couple<L> || detail::has_couple<L>;
  if constexpr (!requires { typename loss_traits<L>::adopts; }) return none;
  constexpr bool reaches = [] {
    if constexpr (requires { loss_traits<L>::host_only; })
      return Device::is_host || !loss_traits<L>::host_only;
    else
      return true;
  }();
  if constexpr (loss_traits<L>::collects)
    return !detail::has_rows<L, Device> ? rows_of_other_form : reaches ? none : rows_of_the_host;
  if (!term && !rows && !summary && !couple) return not_declared;
  if (int(term) + int(rows) + int(summary || couple) > 1) return two_kinds;
  if (couple && !detail::has_couple<L>) return couple_of_other_form;
  if (couple && !summary) return couple_without_summary;
  if (summary && !detail::has_summary<L>) return summary_of_other_form;
  if (summary && !couple) return summary_without_couple;
  if (term && !detail::has_term<L>) return term_of_other_form;
  if (rows && !detail::has_rows<L, Device>) return rows_of_other_form;
  if (!reaches) return rows_of_the_host;
  if constexpr (requires { L::average; })
    if constexpr (!requires(const L& l) {
                    { l.average } -> std::convertible_to<over>;
                  })
      return average_of_other_form;
  return none;
}

}  // namespace streambp
