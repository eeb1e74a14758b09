// Law: in fp32 a step gives what it gives in fp64, to fp32's rounding.
#pragma once

#include "nothing_to_see.hpp"

namespace streambp::laws {

// Every number moved by up to a rounding of fp32.
inline given jittered(given d, int way) {
  constexpr double epsilon = std::numeric_limits<float>::epsilon();
  for (auto* all : {&d.parameters, &d.rows, &d.context, &d.c, &d.initial, &d.weights})
    for (std::size_t i = 0; i < all->size(); ++i)
      (*all)[i] *= 1 + epsilon * wave(position(i), 31 + way);
  return d;
}

// How far fp32 is from fp64 on data that differ by roundings: noise scatters, a fault stays.
class scatter {
 public:
  scatter(stepper& exact, stepper& single, const given& data) {
    for (int way = 0; way < 8; ++way) {
      given d = jittered(data, way);
      for (auto* all : {&d.parameters, &d.rows, &d.context, &d.c, &d.initial, &d.weights})
        for (double& v : *all) v = double(float(v));
      right_.push_back(exact.step(d));
      found_.push_back(single.step(d));
    }
  }
  // Of an entry of a tensor: the largest difference less the smallest.
  double of(std::size_t tensor, std::size_t entry) const {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::size_t w = 0; w < right_.size(); ++w) {
      const double d =
          found_[w].tensors[tensor].data[entry] - right_[w].tensors[tensor].data[entry];
      low = std::min(low, d);
      high = std::max(high, d);
    }
    return high - low;
  }

 private:
  std::vector<outcome> right_, found_;
};

// What rounding of fp32 may do is measured in fp64: how far the step moves when all that it is
// given moves by a rounding. What cancels inside, as where a softmax is saturated, rounds by more;
// before an entry is called wrong it must be wrong by more than it scatters.
inline void check_single_precision(report& r, subject& exact, subject& single, const given& data,
                                   const std::string& where_it_was, const tolerance& allow) {
  const outcome right =
      exact.run(exact.streamed(data.samples, data.prefix, data.beside))->step(data);
  if (!not_finite(right, data.samples).empty()) return;
  const outcome o = single.run(single.streamed(data.samples, data.prefix, data.beside))->step(data);
  std::vector<outcome> moved;
  for (int way = 0; way < 3; ++way)
    moved.push_back(exact.run(exact.streamed(data.samples, data.prefix, data.beside))
                        ->step(jittered(data, way)));
  std::unique_ptr<scatter> scattered;  // measured where it is asked for
  const auto scatter_of = [&](std::size_t tensor, std::size_t entry) {
    if (!scattered)
      scattered = std::make_unique<scatter>(
          *exact.run(exact.streamed(data.samples, data.prefix, data.beside)),
          *single.run(single.streamed(data.samples, data.prefix, data.beside)), data);
    return scattered->of(tensor, entry);
  };
  // A gradient that cancels inside, as a norm's of one column does, is rounded by what cancelled.
  const double least = right.largest_gradient();
  constexpr double epsilon = std::numeric_limits<float>::epsilon();
  for (std::size_t k = 0; k < o.tensors.size(); ++k) {
    const tensor& t = right.tensors[k];
    double shift = epsilon * std::max(t.largest(), least);
    for (const outcome& m : moved)
      for (std::size_t i = 0; i < t.data.size(); ++i)
        shift = std::max(shift, std::abs(m.tensors[k].data[i] - t.data[i]));
    const double within = allow.single * shift;
    for (std::size_t i = 0; i < t.data.size(); ++i) {
      const double difference = std::abs(o.tensors[k].data[i] - t.data[i]);
      r.largest_single = std::max(r.largest_single, difference / shift);
      if (!(difference <= within) && !(difference <= scatter_of(k, i)))
        r.add(law::single_precision,
              sentence(place_of(t, i, data.samples), " is ", o.tensors[k].data[i], " in fp32 and ",
                       t.data[i], " in fp64", where_it_was, ": a difference of ", difference,
                       " where ", within, " is allowed"));
    }
  }
}

}  // namespace streambp::laws
