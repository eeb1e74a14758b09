// compiles
#include <streambp/layers/attention.hpp>
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

struct own_tag {
  static constexpr const char* name = "tag";
};

// One of each kind of state that a layer may keep.
struct pointwise {
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};
struct recurrence : pointwise {
  auto slots() const { return std::tuple{carry(own_tag{}, 1, 8)}; }
};
struct reader : pointwise {
  static constexpr auto sees = past;
  auto slots(position in) const { return std::tuple{memory(own_tag{}, in)}; }
  void remember(auto& at, auto x) const;
  void release(auto& at, auto x, auto dx) const;
};
struct normaliser : reader {
  static constexpr auto sees = reach::all;
  auto slots() const { return std::tuple{total(own_tag{}, 8)}; }
};
struct crossing : pointwise {
  auto slots() const { return std::tuple{context(own_tag{}, 8)}; }
  void remember_context(auto& at, auto c) const;
  void release_context(auto& at, auto c, auto dc) const;
};
struct balanced : pointwise {
  auto slots() const { return std::tuple{tally(own_tag{}, 8)}; }
  double side_loss(auto& at) const;
};

// A type that cannot be edited, final, with members that mean something else.
struct foreign final {
  int features = 8;
  void forward() {}
};
struct adapter : pointwise {
  explicit adapter(const foreign& module) : module(module) {}
  const foreign& module;
};
template <>
struct streambp::layer_traits<foreign> : adapted_traits<foreign, adapter> {};

struct token_loss {
  token_term term(const row_statistics&, const label_place&) const;
};
struct coupled_loss {
  token_term summary(const row_statistics&, const label_place&) const;
  double couple(std::span<const double> sums, std::span<double> slopes) const;
};
struct row_loss {
  double rows(auto& on, position first_row, auto y) const;
};

static_assert(explain_layer<normaliser>());
static_assert(explain_loss<token_loss>() && explain_loss<coupled_loss>() &&
              explain_loss<row_loss>());

int main() {
  const auto block = residual(rms_norm(8) | reader{}) | recurrence{} | crossing{} | balanced{};
  const auto model = embedding(16, 8) | foreign{} | frozen(repeat(2, block)) |
                     residual(rms_norm(8) | bidirectional_attention({.features = 8})) | foreign{};
  static_assert(explain_model<decltype(model)>());
}
