// expect: a carry's states are at.states(tag): before(piece), kept(piece), handed_on(piece)
#include <streambp/engine/site.hpp>
#include <streambp/traits/probe.hpp>

using namespace streambp;

struct state_tag {
  static constexpr const char* name = "state";
};

struct layer {
  auto slots() const { return std::tuple{carry(state_tag{}, 1, 8)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

void use(const site<probe_device, layer>& at) { at[state_tag{}]; }
