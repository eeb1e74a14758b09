// The likely mistakes in a layer or a loss, each as one sentence with its remedy: the first error
// that a compiler shows. Call it where a type comes in, and go on under if constexpr.
#pragma once

#include "layer_fault.hpp"
#include "loss_fault.hpp"

namespace streambp {

// True if Layer is one whose functions can be called with an At; otherwise an error says why not.
template <class Layer, class At = site_probe>
constexpr bool explain_layer() {
  using L = std::remove_cv_t<Layer>;
  if constexpr (explain_declared<L>()) {
    using enum layer_fault;
    constexpr layer_fault fault = fault_of_layer<L, At>();
    static_assert(fault != traits_incomplete,
                  "layer_traits is specialised for this layer without all of its members: derive "
                  "the specialisation from adapted_traits<layer, adapter>");
    static_assert(
        fault != flag_without_value,
        "takes_tokens, backward_reads_input, backward_reads_output, counts_flops and host_only are "
        "constants of the type: write static constexpr bool");
    static_assert(
        fault != sees_no_reach,
        "'sees' says what a row may look at: write static constexpr auto sees = row, past "
        "or all");
    static_assert(
        fault != slots_of_other_form,
        "slots cannot be called: write auto slots() const or auto slots(position in) const, "
        "and make it public");
    static_assert(
        fault != no_tuple_of_slots,
        "slots() returns a std::tuple of slots, such as std::tuple{parameter(weight, out, "
        "in, zeros), saved(h, width)}; one slot alone stands in a tuple, too");
    static_assert(
        fault != nameless_tag,
        "a slot's tag has no name: give the tag's type a static constexpr const char* name");
    static_assert(fault != repeated_tag,
                  "two slots of the layer have the same tag: give each slot a tag type of its own");
    static_assert(fault != features_of_other_form,
                  "features cannot be called: write position features(position in) const, and make "
                  "it public");
    static_assert(
        fault != memory_without_sees,
        "the layer has memory (or a total) but does not say who reads it: write static constexpr "
        "auto "
        "sees = past if a row reads rows up to its own, all if it reads its whole segment");
    static_assert(fault != sees_row_with_state,
                  "the layer says sees = row but has memory, a total or a carry, which other rows "
                  "read: write "
                  "sees = past or all, or make the slot saved or scratch");
    static_assert(
        fault != sees_past_without_state,
        "the layer says sees = past but has neither memory nor carry to see it through: add "
        "memory(tag, cols) or carry(tag, rows, cols) to slots(), or write sees = row");
    static_assert(fault != sees_all_without_memory,
                  "the layer says sees = all but has no memory to read: add memory(tag, cols) or "
                  "total(tag, cols) to slots(), or write sees = row");
    static_assert(fault != total_without_all,
                  "the layer has a total, which every row of its segment reads: write sees = all");
    static_assert(
        fault != sees_all_with_carry,
        "a layer that sees all cannot carry: make what carries a layer of its own, before "
        "this one");
    static_assert(
        fault != memory_without_remember,
        "the layer has memory but no remember(at, x) to write it: add void remember(auto& "
        "at, auto x) const");
    static_assert(
        fault != memory_without_release,
        "the layer has memory but no release(at, x, dx) to take its gradient back to x: add "
        "void release(auto& at, auto x, auto dx) const");
    static_assert(fault != remember_without_memory,
                  "the layer has remember(at, x) but no memory to write: add memory(tag, cols) or "
                  "total(tag, cols) to slots()");
    static_assert(
        fault != release_without_memory,
        "the layer has release(at, x, dx) but no memory whose gradient it could take: add "
        "memory(tag, cols) to slots()");
    static_assert(
        fault != context_without_phases,
        "the layer reads rows of another stream but does not write them: add void "
        "remember_context(auto& at, auto c) const and void release_context(auto& at, auto c, "
        "auto dc) const");
    static_assert(
        fault != context_phases_without_slot,
        "the layer has remember_context(at, c) but no slot for it to write: add context(tag, "
        "cols) to slots()");
    static_assert(fault != tally_without_side_loss,
                  "the layer has a tally but no side_loss(at) to make a loss of it: add double "
                  "side_loss(auto& at) const, which assigns the tally's gradient");
    static_assert(fault != side_loss_without_tally,
                  "the layer has side_loss(at) but no tally to make it of: add tally(tag, cols) to "
                  "slots()");
    static_assert(
        fault != no_forward,
        "the layer has no forward: write auto forward(auto& at, auto x) const, which returns its "
        "rows, or, with a backward, void forward(auto& at, auto x, auto y) const, which assigns y "
        "(x is a view<const scalar>, y a view<scalar>)");
    static_assert(
        fault != no_backward,
        "the layer has no backward(at, x, y, dy, dx): write void backward(auto& at, auto x, "
        "auto y, auto dy, auto dx) const, which adds to dx and to parameter gradients; or let auto "
        "forward(auto& at, auto x) const return the rows, and it is derived");
    static_assert(fault != backward_of_other_form,
                  "the layer's backward cannot be called as backward(at, x, y, dy, dx): write void "
                  "backward(auto& at, auto x, auto y, auto dy, auto dx) const (x, y and dy are "
                  "view<const scalar>, dx is a view<scalar>)");
    return fault == none;
  } else {
    return false;
  }
}

// True if Loss is one; otherwise an error says why not.
template <class Loss, class Device = probe_device>
constexpr bool explain_loss() {
  using enum loss_fault;
  constexpr loss_fault fault = fault_of_loss<std::remove_cv_t<Loss>, Device>();
  static_assert(
      fault != not_declared,
      "this type is no loss: give it term(statistics, place), or summary(statistics, place) "
      "and couple(sums, slopes), or rows(on, first_row, y)");
  static_assert(fault != two_kinds,
                "a loss is of one kind: it has term alone, or summary and couple, or rows alone");
  static_assert(fault != couple_of_other_form,
                "the loss's couple cannot be called as couple(sums, slopes): write double "
                "couple(std::span<const double> sums, std::span<double> slopes) const");
  static_assert(fault != couple_without_summary,
                "the loss couples sums but does not say of what: add token_term summary(const "
                "row_statistics&, const label_place&) const");
  static_assert(
      fault != summary_of_other_form,
      "the loss's summary cannot be called as summary(statistics, place): write token_term "
      "summary(const row_statistics&, const label_place&) const");
  static_assert(fault != summary_without_couple,
                "the loss sums up tokens but does nothing with the sums: add double "
                "couple(std::span<const double> sums, std::span<double> slopes) const");
  static_assert(fault != term_of_other_form,
                "the loss's term cannot be called as term(statistics, place): write token_term "
                "term(const row_statistics&, const label_place&) const");
  static_assert(
      fault != rows_of_other_form,
      "the loss's rows cannot be called as rows(on, first_row, y): write double rows(auto& "
      "on, position first_row, auto y) const");
  static_assert(fault != rows_of_the_host,
                "the loss's own loops touch rows, and the host does not reach the memory of this "
                "device: write rows in primitives and say static constexpr bool host_only = false, "
                "or run it on the CPU");
  static_assert(fault != average_of_other_form,
                "the loss's average is over::tokens, over::samples or over::nothing");
  return fault == none;
}

}  // namespace streambp
