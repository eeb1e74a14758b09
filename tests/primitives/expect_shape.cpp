// Operands of wrong shapes: each primitive names the one, what it is and what it should be.
#include <streambp/primitives/expect_shape.hpp>

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <streambp/streambp.hpp>
#include <string>
#include <vector>

using namespace streambp;

namespace {

using on_type = cpu::device<double>;

// (rows, cols) of numbers that nobody reads.
view<double> of(position rows, position cols) {
  static std::vector<double> numbers(1000);
  return {numbers.data(), rows, cols};
}
std::span<double> numbers(position count) { return {of(1, count).data, std::size_t(count)}; }

struct call {
  std::function<void(on_type&)> make;
  std::string said;
};

const packed samples = packed::one(6);
const piece_list pieces(samples, {0, 6});
const position grains[] = {0, 4, 6};
const position too_few[] = {0, 4};
const carry_rows<double> states{};
const std::vector<double> frequencies{1, 0.1};
const attention_shape heads{.heads = 4, .kv_heads = 2, .key_width = 3, .value_width = 2, .tile = 8};

void attend(on_type& on, view<double> q, view<double> k, view<double> v, view<double> o,
            view<double> lse) {
  attention_forward(on, heads, pieces, q, k, v, nullptr, o, lse, of(2, attention_workspace(heads)));
}
void attend_back(on_type& on, view<double> d_o, view<double> dq, view<double> dk, view<double> dv) {
  attention_backward(on, heads, pieces, of(6, 12), of(6, 6), of(6, 4), nullptr, of(6, 8), of(6, 4),
                     d_o, dq, dk, dv, nullptr, of(2, attention_workspace(heads)));
}

carry_rows<double> from(view<double> in) {
  carry_rows<double> only;
  only.in = in;
  return only;
}
const autodiff::expression_term<double> only_leaf[] = {{.leaf = true}};
const std::span<const autodiff::expression_term<double>> leaf = only_leaf;
const linear_attention_shape decays{4, 2, 3, 2, 1, 8};
const position workspace = linear_attention_workspace(decays);
void decayed(on_type& on, view<double> k, view<double> given, const carry_rows<double>& of_states) {
  linear_attention_forward(on, decays, pieces, of_states, of(6, 6), k, of(6, 8), of(6, 4), of(6, 8),
                           of(6, decays.kept_columns()), given);
}

const std::vector<call> calls{
    {[](on_type& on) { project(on, of(6, 16), of(16, 8), of(6, 8)); },
     "project: w is 16 x 8, wanted (out = 8, in = 16)"},
    {[](on_type& on) { project(on, of(6, 16), of(8, 16), of(5, 8)); },
     "project: y is 5 x 8, wanted (rows = 6, out = 8)"},
    {[](on_type& on) { project_back(on, of(6, 8), of(16, 8), of(6, 16)); },
     "project_back: w is 16 x 8, wanted (out = 8, in = 16)"},
    {[](on_type& on) { project_back(on, of(6, 8), of(8, 16), of(7, 16)); },
     "project_back: dx is 7 x 16, wanted (rows = 6, in = 16)"},
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(5, 16), of(8, 16), grains); },
     "add_weight_gradient: x is 5 x 16, wanted (rows = 6, in = 16)"},
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(6, 16), of(16, 16), grains); },
     "add_weight_gradient: dw is 16 x 16, wanted (out = 8, in = 16)"},
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(6, 16), of(0, 16), grains); },
     "add_weight_gradient: dw has no rows, as the gradient of a frozen parameter has none; ask "
     "at.trains(tag) first"},
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(6, 16), of(8, 16), too_few); },
     "add_weight_gradient: grains cover 4 rows, the operands have 6; give at.grains() of the rows' "
     "chunk"},
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(6, 16), of(8, 16), {}); },
     "add_weight_gradient: grains has no edge; give at.grains() of the rows' chunk"},
    {[](on_type& on) { read_rows(on, of(6, 3), numbers(17)); },
     "read_rows: to has 17 entries, wanted (rows x columns = 18)"},
    {[](on_type& on) { write_rows(on, numbers(19), of(6, 3)); },
     "write_rows: from has 19 entries, wanted (rows x columns = 18)"},
    {[](on_type& on) { sum_of_products(on, of(6, 3), of(6, 4)); },
     "sum_of_products: c is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { copy(on, of(6, 3), of(6, 4)); },
     "copy: x is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { add(on, of(5, 4), of(6, 4)); },
     "add: x is 5 x 4, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { sum(on, of(6, 4), of(6, 5), of(6, 4)); },
     "sum: x2 is 6 x 5, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { add_bias(on, of(1, 3), of(6, 4)); },
     "add_bias: b is 1 x 3, wanted (one = 1, columns = 4)"},
    {[](on_type& on) { add_column_sums(on, of(6, 4), of(1, 3), grains); },
     "add_column_sums: db is 1 x 3, wanted (one = 1, columns = 4)"},
    {[](on_type& on) { activation_forward(on, activation::silu, of(6, 4), of(6, 3)); },
     "activation_forward: y is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { activation_backward(on, activation::silu, of(6, 4), of(6, 4), of(5, 4)); },
     "activation_backward: dx is 5 x 4, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { gated_forward(on, activation::silu, of(6, 4), of(6, 3), of(6, 4)); },
     "gated_forward: up is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { gated_backward(on, activation::silu, of(6, 4), of(6, 4), of(6, 8)); },
     "gated_backward: dh is 6 x 8, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { rms_norm_forward(on, of(6, 4), of(1, 3), 1e-6, of(6, 4), of(6, 1)); },
     "rms_norm_forward: gain is 1 x 3, wanted (one = 1, columns = 4)"},
    {[](on_type& on) { rms_norm_forward(on, of(6, 4), {}, 1e-6, of(6, 4), of(5, 1)); },
     "rms_norm_forward: inverse is 5 x 1, wanted (rows = 6, one = 1)"},
    {[](on_type& on) {
       rms_norm_backward(on, of(6, 4), {}, of(6, 1), of(6, 4), of(6, 4), of(4, 1), grains);
     },
     "rms_norm_backward: dgain is 4 x 1, wanted (one = 1, columns = 4)"},
    {[](on_type& on) { layer_norm_forward(on, of(6, 4), {}, {}, 1e-6, of(6, 4), of(6, 1)); },
     "layer_norm_forward: statistics is 6 x 1, wanted (rows = 6, mean and inverse deviation = 2)"},
    {[](on_type& on) {
       layer_norm_backward(on, of(6, 4), {}, of(6, 2), of(6, 3), of(6, 4), {}, {}, grains);
     },
     "layer_norm_backward: dy is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { scan_forward(on, pieces, states, of(6, 4), of(6, 3), of(6, 4)); },
     "scan_forward: c is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { scan_forward(on, pieces, states, of(5, 4), of(5, 4), of(5, 4)); },
     "scan_forward: the pieces have 6 rows, h has 5; give at.pieces() of the rows' chunk"},
    {[](on_type& on) {
       scan_backward(on, pieces, states, of(6, 4), of(6, 4), of(6, 4), of(6, 4), of(6, 4),
                     of(6, 2));
     },
     "scan_backward: dc is 6 x 2, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) {
       rotate(on, {2, 4, 4, 1e4}, frequencies, pieces, of(6, 4));
     },
     "rotate: x is 6 x 4, wanted (rows = 6, heads x width = 8)"},
    {[](on_type& on) {
       rotate(on, {1, 6, 6, 1e4}, frequencies, pieces, of(6, 6));
     },
     "rotate: 2 frequencies for 6 features that turn; one for each pair"},
    {[](on_type& on) { attend(on, of(6, 9), of(6, 6), of(6, 4), of(6, 8), of(6, 4)); },
     "attention_forward: q is 6 x 9, wanted (rows = 6, heads x key width = 12)"},
    {[](on_type& on) { attend(on, of(6, 12), of(6, 12), of(6, 4), of(6, 8), of(6, 4)); },
     "attention_forward: k is 6 x 12, wanted (memory rows = 6, key/value heads x key width = 6)"},
    {[](on_type& on) { attend(on, of(6, 12), of(6, 6), of(5, 4), of(6, 8), of(6, 4)); },
     "attention_forward: v is 5 x 4, wanted (memory rows = 6, key/value heads x value width = 4)"},
    {[](on_type& on) { attend(on, of(6, 12), of(6, 6), of(6, 4), of(6, 8), of(6, 1)); },
     "attention_forward: lse is 6 x 1, wanted (rows = 6, heads = 4)"},
    {[](on_type& on) {
       attention_forward(on, heads, pieces, of(6, 12), {{2, 6}, of(3, 6), of(3, 4)}, nullptr,
                         of(6, 8), of(6, 4), of(6, 4), of(2, attention_workspace(heads)));
     },
     "attention_forward: rows [0, 4) of k, which has 3"},
    {[](on_type& on) {
       attention_forward(on, heads, pieces, of(6, 12), {{2, 6}, of(4, 6), of(4, 4)}, nullptr,
                         of(6, 8), of(6, 4), of(6, 3), of(2, attention_workspace(heads)));
     },
     "attention_forward: sum is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) { attend_back(on, of(6, 8), of(6, 12), of(6, 4), of(6, 4)); },
     "attention_backward: dk is 6 x 4, wanted (rows = 6, columns = 6)"},
    {[](on_type& on) { convolution_forward(on, pieces, states, of(6, 4), of(3, 5), {}, of(6, 4)); },
     "convolution_forward: x is 6 x 4, wanted (rows = 6, columns = 5)"},
    {[](on_type& on) {
       convolution_forward(on, pieces, from(of(1, 4)), of(6, 4), of(3, 4), {}, of(6, 4));
     },
     "convolution_forward: states.in is 1 x 4, wanted at least (rows = 1, (taps - 1) x columns = "
     "8)"},
    {[](on_type& on) {
       convolution_backward(on, pieces, from(of(1, 7)), of(3, 4), of(6, 4), of(6, 4), write::add);
     },
     "convolution_backward: states.in is 1 x 7, wanted at least (rows = 1, (taps - 1) x columns = "
     "8)"},
    {[](on_type& on) { scan_forward(on, pieces, from(of(1, 3)), of(6, 4), of(6, 4), of(6, 4)); },
     "scan_forward: states.in is 1 x 3, wanted at least (rows = 1, columns = 4)"},
    {[](on_type& on) {
       attention_forward(on, heads, pieces, of(6, 12), of(6, 6), of(6, 4), nullptr, of(6, 8),
                         of(6, 4), of(2, 9));
     },
     sentence("attention_forward: workspace is 2 x 9, wanted at least (threads = 2, numbers = ",
              attention_workspace(heads), ")")},
    {[](on_type& on) {
       constant_decays(on, std::array{-0.1, -0.2}, of(6, 3));
     },
     "constant_decays: logarithms has 2 entries, wanted (heads = 3)"},
    {[](on_type& on) { sigmoid_decays(on, 16, of(5, 3), of(6, 3)); },
     "sigmoid_decays: z is 5 x 3, wanted (rows = 6, columns = 3)"},
    {[](on_type& on) { sigmoid_decays_backward(on, 16, of(6, 3), of(6, 4), of(6, 3)); },
     "sigmoid_decays_backward: dla is 6 x 4, wanted (rows = 6, columns = 3)"},
    {[](on_type& on) { order_by_expert(on, of(6, 2), 4, of(6, 3), of(1, 5)); },
     "order_by_expert: place is 6 x 3, wanted (rows = 6, columns = 2)"},
    {[](on_type& on) { order_by_expert(on, of(6, 2), 4, of(6, 2), of(1, 4)); },
     "order_by_expert: first is 1 x 4, wanted at least (one = 1, experts + 1 = 5)"},
    {[](on_type& on) { copy_to_experts(on, of(6, 3), of(6, 2), {}, of(6, 3)); },
     "copy_to_experts: copies is 6 x 3, wanted (rows x experts a row = 12, columns = 3)"},
    {[](on_type& on) { copy_to_experts(on, of(6, 3), of(5, 2), {}, of(12, 3)); },
     "copy_to_experts: place is 5 x 2, wanted (rows = 6, experts a row = 2)"},
    {[](on_type& on) { add_from_experts(on, of(12, 3), of(6, 2), of(6, 3), of(6, 3)); },
     "add_from_experts: weights is 6 x 3, wanted (rows = 6, columns = 2)"},
    {[](on_type& on) { dot_with_experts(on, of(12, 4), of(6, 2), of(6, 3), of(6, 2)); },
     "dot_with_experts: copies is 12 x 4, wanted (rows x experts a row = 12, columns = 3)"},
    {[](on_type& on) { project_experts(on, of(1, 5), 4, of(12, 3), of(8, 3), of(12, 5)); },
     "project_experts: w is 8 x 3, wanted (experts x out = 20, in = 3)"},
    {[](on_type& on) { project_experts(on, of(1, 4), 4, of(12, 3), of(20, 3), of(12, 5)); },
     "project_experts: first is 1 x 4, wanted at least (one = 1, experts + 1 = 5)"},
    {[](on_type& on) {
       project_back_experts(on, of(1, 5), 4, of(12, 5), of(20, 3), of(6, 3), write::add);
     },
     "project_back_experts: dx is 6 x 3, wanted (rows = 12, in = 3)"},
    {[](on_type& on) {
       add_expert_gradients(on, of(1, 5), 4, of(6, 2), of(6, 5), of(6, 3), of(20, 3), grains);
     },
     "add_expert_gradients: dy is 6 x 5, wanted (rows x experts a row = 12, out = 5)"},
    {[](on_type& on) {
       add_expert_gradients(on, of(1, 5), 4, of(6, 2), of(12, 5), of(12, 3), of(20, 3), too_few);
     },
     "add_expert_gradients: grains cover 4 rows, the operands have 6; give at.grains() of the "
     "rows' "
     "chunk"},
    {[](on_type& on) {
       evaluate(on, leaf, of(6, 4), {2, 7});
     },
     "evaluate: rows [2, 7) of y, which has 6"},
    {[](on_type& on) {
       evaluate_sum(on, leaf, 4, of(6, 4), {0, 6});
     },
     "evaluate_sum: y is 6 x 4, wanted (rows = 6, one = 1)"},
    {[](on_type& on) {
       evaluate_max(on, leaf, 4, of(6, 1), {-1, 6});
     },
     "evaluate_max: rows [-1, 6) of y, which has 6"},
    {[](on_type& on) {
       evaluate_rms(on, leaf, 4, 1e-6, of(6, 4), {0, 6});
     },
     "evaluate_rms: y is 6 x 4, wanted (rows = 6, one = 1)"},
    {[](on_type& on) {
       differentiate_rms(on, leaf, 4, of(6, 1), of(5, 1), {0, 6});
     },
     "differentiate_rms: dy is 5 x 1, wanted (rows = 6, one = 1)"},
    {[](on_type& on) {
       differentiate(on, leaf, 4, of(6, 3), {0, 6});
     },
     "differentiate: dy is 6 x 3, wanted (rows = 6, columns, or one = 4)"},
    {[](on_type& on) {
       differentiate_max(on, leaf, 4, of(6, 1), of(5, 1), {0, 6});
     },
     "differentiate_max: dy is 5 x 1, wanted (rows = 6, one = 1)"},
    {[](on_type& on) { gru_forward(on, pieces, states, of(8, 3), of(6, 9), of(6, 3), of(6, 3)); },
     "gru_forward: w is 8 x 3, wanted (3 units = 9, units = 3)"},
    {[](on_type& on) {
       gru_forward(on, pieces, from(of(1, 2)), of(9, 3), of(6, 9), of(6, 3), of(6, 3));
     },
     "gru_forward: states.in is 1 x 2, wanted at least (rows = 1, units = 3)"},
    {[](on_type& on) {
       gru_backward(on, pieces, states, of(9, 3), of(6, 9), of(6, 3), of(6, 3), of(6, 3), of(5, 3));
     },
     "gru_backward: dh is 5 x 3, wanted (rows = 6, columns = 3)"},
    {[](on_type& on) { lstm_forward(on, pieces, states, of(12, 3), of(6, 9), of(6, 3), of(6, 3)); },
     "lstm_forward: z is 6 x 9, wanted (rows = 6, 4 units = 12)"},
    {[](on_type& on) {
       lstm_backward(on, pieces, from(of(1, 3)), of(12, 3), of(6, 12), of(6, 3), of(6, 3), of(6, 3),
                     of(6, 3));
     },
     "lstm_backward: states.in is 1 x 3, wanted at least (rows = 1, 2 units = 6)"},
    {[](on_type& on) { rows_before(on, pieces, states, of(6, 3), of(6, 4)); },
     "rows_before: y is 6 x 3, wanted (rows = 6, columns = 4)"},
    {[](on_type& on) {
       row_statistics_of(on, {}, of(6, 4), std::array{0, 1}, std::array{2}, false, {});
     },
     "row_statistics_of: first has 2 entries, wanted (rows + 1 = 7)"},
    {[](on_type& on) {
       row_statistics_of(on, {}, of(2, 4), std::array{0, 1, 3}, std::array{2, 0}, false, {});
     },
     "row_statistics_of: targets has 2 entries, wanted (first.back() = 3)"},
    {[](on_type& on) {
       gradient_of_rows(on, {}, of(1, 4), std::array{0, 1}, std::array{2},
                        std::array{row_statistics{}}, {});
     },
     "gradient_of_rows: slopes has 0 entries, wanted (targets = 1)"},
    {[](on_type& on) { decayed(on, of(6, 5), of(2, workspace), states); },
     "linear_attention_forward: k is 6 x 5, wanted (rows = 6, key heads x key width = 6)"},
    {[](on_type& on) { decayed(on, of(6, 6), of(1, 5), states); },
     sentence(
         "linear_attention_forward: workspace is 1 x 5, wanted at least (threads = 2, numbers = ",
         workspace, ")")},
    {[](on_type& on) { decayed(on, of(6, 6), of(2, workspace), from(of(1, 6))); },
     "linear_attention_forward: states.in is 1 x 6, wanted at least (rows = 1, heads x key width x "
     "value width = 24)"},
    {[](on_type& on) {
       linear_attention_backward(on, decays, pieces, states, of(6, 6), of(6, 6), of(6, 8), of(6, 4),
                                 of(6, 8), of(6, 6), of(6, 12), of(6, 8), {},
                                 of(6, decays.kept_columns()), of(2, workspace));
     },
     "linear_attention_backward: dq is 6 x 6, wanted (rows = 6, heads x key width = 12)"},
    {[](on_type& on) { sum_over_group(on, decays, of(6, 12), of(6, 12)); },
     "sum_over_group: y is 6 x 12, wanted (rows = 6, key heads x width = 6)"},
    {[](on_type& on) { route(on, of(6, 4), true, of(6, 1), of(6, 5), of(6, 5)); },
     "route: chosen is 6 x 5, wanted (rows = 6, at most the experts = 4)"},
    {[](on_type& on) { route(on, of(6, 4), true, of(5, 1), of(6, 2), of(6, 2)); },
     "route: lse is 5 x 1, wanted (rows = 6, one = 1)"},
    {[](on_type& on) { add_routing_sums(on, of(6, 4), of(6, 1), of(6, 2), grains, of(1, 8)); },
     "add_routing_sums: sums is 1 x 8, wanted (one = 1, 2 experts + 1 = 9)"},
    {[](on_type& on) {
       route_backward(on, of(6, 4), of(6, 1), of(6, 2), of(6, 2), of(6, 2), true, of(1, 4));
     },
     "route_backward: side is 1 x 4, wanted at least (one = 1, experts + 1 = 5)"},
    {[](on_type& on) { state_steps(on, of(6, 3), of(1, 2), of(6, 3), of(6, 3)); },
     "state_steps: a_log is 1 x 2, wanted (one = 1, heads = 3)"},
    {[](on_type& on) {
       state_steps_backward(on, of(6, 3), of(1, 3), of(6, 3), of(6, 3), of(6, 4), of(6, 3), {}, {});
     },
     "state_steps_backward: dla is 6 x 4, wanted (rows = 6, columns = 3)"},
    {[](on_type& on) { state_inputs(on, of(6, 3), of(6, 7), of(6, 7)); },
     "state_inputs: v is 6 x 7, wanted (rows = 6, heads x width = 6)"},
    {[](on_type& on) { add_skip(on, of(1, 3), of(5, 6), of(6, 6)); },
     "add_skip: x is 5 x 6, wanted (rows = 6, columns = 6)"},
    {[](on_type& on) {
       state_inputs_backward(on, of(6, 3), of(1, 2), of(6, 6), of(6, 6), of(6, 6), of(6, 6),
                             of(6, 3), of(6, 3));
     },
     "state_inputs_backward: skip is 1 x 2, wanted (one = 1, heads = 3)"},
    {[](on_type& on) { add_time_moments(on, pieces, 8, of(6, 4), of(1, 4)); },
     "add_time_moments: moments is 1 x 4, wanted (segments = 1, 2 columns = 8)"},
    {[](on_type& on) {
       time_norm_forward(on, pieces, of(6, 4), of(1, 8), of(1, 3), of(1, 4), 1e-5, of(6, 4));
     },
     "time_norm_forward: gain is 1 x 3, wanted (one = 1, columns = 4)"},
    {[](on_type& on) {
       time_norm_backward(on, pieces, 8, of(6, 4), of(1, 8), of(1, 4), 1e-5, of(6, 4), of(6, 4),
                          of(1, 4), {}, {});
     },
     "time_norm_backward: dmoments is 1 x 4, wanted (rows = 1, columns = 8)"},
    {[](on_type& on) {
       time_norm_release(on, pieces, of(5, 4), of(1, 8), 1e-5, of(1, 8), of(5, 4));
     },
     "time_norm_release: the pieces have 6 rows, x has 5; give at.pieces() of the rows' chunk"},
};

// A device that counts has one thread.
std::string said_of_two_threads(std::string said) {
  const std::string one = "(threads = 1";
  if (const auto at = said.find(one); at != said.npos) said[at + one.size() - 1] = '2';
  return said;
}

std::string refusal(const call& c, on_type& on) {
  try {
    c.make(on);
  } catch (const shape_error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE(
    "wrong shapes are refused in a sentence, where rows have data and where they are counted") {
  on_type counting, working(2);
  for (const call& c : calls) {
    CHECK(refusal(c, working) == c.said);
    CHECK(said_of_two_threads(refusal(c, counting)) == c.said);
  }
}

TEST_CASE("a gradient of a frozen parameter, and a gain that there is none of, have no rows") {
  on_type on(1);
  std::vector<double> x(12, 1), y(12), inverse(3), none;
  rms_norm_forward(on, view<const double>{x.data(), 3, 4}, {}, 1e-6, {y.data(), 3, 4},
                   {inverse.data(), 3, 1});
  rms_norm_backward(on, view<const double>{x.data(), 3, 4}, {}, view<double>{inverse.data(), 3, 1},
                    view<const double>{x.data(), 3, 4}, {y.data(), 3, 4}, {}, {});
  CHECK(inverse[0] == doctest::Approx(1));
}

TEST_CASE("tokens and rows of a table: as many as there are, and as wide") {
  on_type on(1);
  const std::int32_t tokens[] = {1, 2};
  CHECK_THROWS_WITH_AS(gather(on, tokens, of(9, 4), 1., of(3, 4)),
                       "gather: y is 3 x 4, wanted (tokens = 2, columns = 4)", shape_error);
  CHECK_THROWS_WITH_AS(scatter_add(on, tokens, of(2, 3), 1., of(9, 4)),
                       "scatter_add: dy is 2 x 3, wanted (tokens = 2, columns = 4)", shape_error);
}
