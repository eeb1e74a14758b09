// Law: gradients are slopes. fp64; every parameter tensor, the input, prefix memories and initial
// states, each relative to its own largest entry.
#pragma once

#include "slope.hpp"
#include "subject.hpp"

namespace streambp::laws {

// What a tensor is the gradient of.
inline double* entries_behind(given& d, const tensor& t) {
  auto& all = t.kind == tensor_kind::parameter ? d.parameters
              : t.kind == tensor_kind::input   ? d.rows
              : t.kind == tensor_kind::context ? d.context
                                               : d.initial;
  return all.data() + t.offset;
}

// Terms of the value, by size: the value is rounded relative to them.
inline double size_of_terms(const given& data, const outcome& o) {
  double sum = std::abs(o.value);
  for (const tensor& t : o.tensors)
    if (t.kind == tensor_kind::output)
      for (std::size_t i = 0; i < t.data.size(); ++i)
        sum += std::abs(t.data[i] * (i < data.c.size() ? data.c[i] : 1));
  return sum;
}

// One entry, or all of a tensor along their signs: which way the value is moved.
struct direction {
  static constexpr std::size_t all = std::size_t(-1);
  std::size_t entry = all;

  double of(std::size_t i) const {
    if (entry == all) return wave(position(i), 21) < 0 ? -1.0 : 1.0;
    return i == entry ? 1.0 : 0.0;
  }
  double along(const tensor& t) const {
    if (entry != all) return t.data[entry];
    double sum = 0;
    for (std::size_t i = 0; i < t.data.size(); ++i) sum += of(i) * t.data[i];
    return sum;
  }
  std::string words(const tensor& t, const packed& samples) const {
    return entry == all ? sentence(t.name, " along all its entries' signs")
                        : place_of(t, entry, samples);
  }
};

// The value as a function of how far a tensor is moved.
class moved_value {
 public:
  moved_value(stepper& run, const given& data, const tensor& t)
      : run_(run),
        moved_(data),
        at_(entries_behind(moved_, t)),
        before_(at_, at_ + t.data.size()) {}

  auto along(direction d) {
    return [this, d](double h) {
      for (std::size_t i = 0; i < before_.size(); ++i) at_[i] = before_[i] + h * d.of(i);
      return run_.value(moved_);
    };
  }

 private:
  stepper& run_;
  given moved_;
  double* at_;
  std::vector<double> before_;
};

// In the order of a backward pass: what is wrong in a layer's backward spoils the gradients of all
// layers before it. Parameters from the last to the first, then what the first layer was given.
inline std::vector<const tensor*> in_order_of_backward(const std::vector<tensor>& tensors) {
  std::vector<const tensor*> order;
  for (std::size_t i = tensors.size(); i-- > 0;)
    if (tensors[i].kind == tensor_kind::parameter) order.push_back(&tensors[i]);
  for (const tensor& t : tensors)
    if (t.kind != tensor_kind::parameter && t.kind != tensor_kind::output) order.push_back(&t);
  return order;
}

// Along a direction of signs that moves every entry at once, and for ten entries one by one.
// A gradient is right as soon as an extrapolated slope agrees with it. It is wrong when slopes have
// converged to another number, from two steps; or do not converge from either side, or to numbers
// that it does not lie between (a kink within the least step).
inline void check_differences(report& r, subject& of, const given& data, const step_plan& plan,
                              const outcome& gradients, const tolerance& allow) {
  const auto run = of.run(plan);
  const double terms = size_of_terms(data, gradients);
  for (const tensor* one : in_order_of_backward(gradients.tensors)) {
    const tensor& t = *one;
    moved_value moved(*run, data, t);
    const std::size_t n = t.data.size();
    const double most = std::max(t.largest(), allow.smallest * gradients.largest_gradient());
    const auto compare = [&](direction way, double size) {
      const double expected = way.along(t);
      const auto value = moved.along(way);
      const auto allowed = [&](const slope_estimate& e) {
        return allow.differences * std::max(size, std::abs(e.slope)) +
               allow.value * terms * of.epsilon() / e.step;
      };
      int others = 0;  // steps whose slopes converged, to another number
      const slope_estimate found = central_slope(value, [&](const slope_estimate& e) {
        if (std::abs(e.slope - expected) <= allowed(e)) return true;
        others = e.error <= allowed(e) / 2 ? others + 1 : 0;
        return others == 2;
      });
      const double difference = std::abs(found.slope - expected), within = allowed(found);
      if (difference <= within) {
        r.largest_error =
            std::max(r.largest_error, difference / std::max(size, std::abs(found.slope)));
        return;
      }
      const std::string says = sentence(way.words(t, data.samples), " is ", expected);
      if (others == 2) {
        r.add(law::central_differences,
              sentence(says, ", the slope is ", found.slope, ": a difference of ", difference,
                       " where ", within, " is allowed (largest entry ", most,
                       "); look at what backward adds there, or allow more in "
                       "setting.allowed.differences; ",
                       words(plan)));
        return;
      }
      const double at_0 = value(0);
      const slope_estimate above = one_sided_slope(value, at_0, first_step, halvings),
                           below = one_sided_slope(value, at_0, -first_step, halvings);
      const double slack = above.error + below.error + within;
      if (slack < allow.kinks * size && expected >= std::min(above.slope, below.slope) - slack &&
          expected <= std::max(above.slope, below.slope) + slack)
        return;
      r.add(law::central_differences,
            sentence(says, ", the slope is ", below.slope, " from below and ", above.slope,
                     " from above, to within ", std::max(above.error, below.error),
                     ": the value jumps or is rounded coarsely (to float in fp64?) near this "
                     "place; ",
                     words(plan)));
    };
    for (std::size_t k = 0; k < 10 && k < n; ++k)
      compare({n <= 10 ? k : (k * n) / 10 + k % 3}, most);
    compare({}, most * std::sqrt(double(n)));
  }
}

}  // namespace streambp::laws
