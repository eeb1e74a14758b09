// Operands of wrong shapes: each primitive names the one, what it is and what it should be.
#include <streambp/primitives/expect_shape.hpp>

#include <doctest/doctest.h>

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
  attention_forward(on, heads, pieces, q, k, v, nullptr, o, lse, of(1, 1));
}
void attend_back(on_type& on, view<double> d_o, view<double> dq, view<double> dk, view<double> dv) {
  attention_backward(on, heads, pieces, of(6, 12), of(6, 6), of(6, 4), nullptr, of(6, 8), of(6, 4),
                     d_o, dq, dk, dv, nullptr, of(1, 1));
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
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(6, 16), of(8, 16), too_few); },
     "add_weight_gradient: grains cover 4 rows, the operands have 6; give at.grains() of the rows' "
     "chunk"},
    {[](on_type& on) { add_weight_gradient(on, of(6, 8), of(6, 16), of(8, 16), {}); },
     "add_weight_gradient: grains has no edge; give at.grains() of the rows' chunk"},
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
    {[](on_type& on) { attend_back(on, of(6, 8), of(6, 12), of(6, 4), of(6, 4)); },
     "attention_backward: dk is 6 x 4, wanted (rows = 6, columns = 6)"},
    {[](on_type& on) { convolution_forward(on, pieces, states, of(6, 4), of(3, 5), {}, of(6, 4)); },
     "convolution_forward: x is 6 x 4, wanted (rows = 6, columns = 5)"},
};

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
    CHECK(refusal(c, counting) == c.said);
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
