// expect: layer_traits is specialised for this layer without all of its members: derive the specialisation from adapted_traits<layer, adapter>
#include <streambp/model/explain.hpp>

using namespace streambp;

struct foreign {};

template <>
struct streambp::layer_traits<foreign> {
  static void forward(const foreign&, auto& at, auto x, auto y);
  static void backward(const foreign&, auto& at, auto x, auto y, auto dy, auto dx);
};

int main() { explain_layer<foreign>(); }
