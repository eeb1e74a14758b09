// compiles
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};
struct g_tag {
  static constexpr const char* name = "g";
};
constexpr k_tag k{};
constexpr g_tag g{};

struct entries {
  auto forward(auto x) const { return select(x - 1, x, exp(x)); }
};
struct rows {
  static constexpr const char* name = "rows";
  auto slots(position in) const { return std::tuple{parameter(g, 1, in, ones)}; }
  auto forward(auto& at, auto x) const { return rms_normalise(x) * (1 + at[g]) / 2; }
};
struct reader {
  static constexpr auto sees = all;
  auto slots(position in) const { return std::tuple{memory(k, in)}; }
  void remember(auto& at, auto x) const { at.write(k, x); }
  auto forward(auto& at, auto x) const { return attend(x, at[k], at[k], {}); }
};
struct carrier {
  auto slots(position in) const { return std::tuple{carry(g, 1, in)}; }
  auto forward(auto& at, auto x) const {
    return at.recur(g, [&](auto before) { return 0.5 * before + x; });
  }
};

static_assert(explain_layer<entries>() && explain_layer<rows>() && explain_layer<reader>() &&
              explain_layer<carrier>());
static_assert(layer_traits<rows>::name()[0] == 'r' && layer_traits<rows>::counts_flops);
static_assert(layer_traits<entries>::split == dependency{});
static_assert(layer_traits<reader>::split.forces_cut() && layer_traits<reader>::split.remembers);
static_assert(layer_traits<carrier>::split.carries && layer_traits<carrier>::split.sees == past);

int main() {}
