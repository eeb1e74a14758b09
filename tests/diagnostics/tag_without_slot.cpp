// expect: no slot has this tag: add it to the layer's slots()
#include <streambp/engine/site.hpp>
#include <streambp/traits/probe.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct state_tag {
  static constexpr const char* name = "state";
};

struct layer {
  auto slots() const { return std::tuple{saved(k_tag{}, 8)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

void use(const site<probe_device, layer>& at) { at[state_tag{}]; }
