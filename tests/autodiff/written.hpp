// A layer whose forward is given when the program runs: one type for every operation under test.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <streambp/laws/hold.hpp>
#include <streambp/streambp.hpp>

namespace streambp {

struct written {
  struct wide_tag {
    static constexpr const char* name = "wide";
  };
  struct square_tag {
    static constexpr const char* name = "square";
  };
  struct gain_tag {
    static constexpr const char* name = "gain";
  };
  struct factor_tag {
    static constexpr const char* name = "factor";
  };
  static constexpr wide_tag wide{};      // (7, features)
  static constexpr square_tag square{};  // (features, features)
  static constexpr gain_tag gain{};      // (1, features)
  static constexpr factor_tag factor{};  // (1, 1)
  static constexpr const char* name = "written";

  using slot_list =
      std::tuple<slot<wide_tag, slot_kind::parameter>, slot<square_tag, slot_kind::parameter>,
                 slot<gain_tag, slot_kind::parameter>, slot<factor_tag, slot_kind::parameter>>;
  using at_type = autodiff::recorder<slot_list, autodiff::phase::forward>;
  using variable = autodiff::variable;

  std::function<variable(const at_type&, variable)> f;

  slot_list slots(position in) const {
    return {parameter(wide, 7, in, zeros), parameter(square, in, in, zeros),
            parameter(gain, 1, in, ones), parameter(factor, 1, 1, ones)};
  }
  variable forward(const at_type& at, variable x) const { return f(at, x); }
};

}  // namespace streambp
