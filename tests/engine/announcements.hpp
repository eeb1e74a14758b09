// What a step says about gradients that are final.
#pragma once

#include "trial.hpp"

namespace streambp {

// Each range of gradients is announced once, and does not change after that.
template <class Scalar, class Model, class Loss>
void announces_each_gradient_once(const trial<Scalar, Model, Loss>& t, const step_plan& p) {
  INFO("plan: ", in_words(p));
  auto e = t.engine_for(p);
  outcome<Scalar> out;
  out.gradient.assign(std::size_t(t.list.table.gradients), Scalar(0));
  std::vector<int> announced(out.gradient.size(), 0);
  std::vector<Scalar> then(out.gradient.size(), Scalar(0));
  e.when_final([&](position offset, position count) {
    for (position i = offset; i < offset + count; ++i) {
      ++announced[std::size_t(i)];
      then[std::size_t(i)] = out.gradient[std::size_t(i)];
    }
  });
  const batch<Scalar> b = t.data(out);
  e.add_gradient(t.parameters, b, out.gradient);
  CHECK(announced == std::vector<int>(out.gradient.size(), 1));
  CHECK(same_bits(then, out.gradient));
}

}  // namespace streambp
