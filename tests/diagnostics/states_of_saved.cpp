// expect: at.states(tag) is for carries; any other slot is at[tag]
#include <streambp/engine/site.hpp>
#include <streambp/traits/probe.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct layer {
  auto slots() const { return std::tuple{saved(k_tag{}, 8)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

void use(const site<probe_device, layer>& at) { at.states(k_tag{}); }
