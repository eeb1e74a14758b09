// Models of three to five sections, whose choices can be counted.
#pragma once

#include <streambp/streambp.hpp>

namespace streambp::small {

inline const geometry grains{8, 16};
inline const packed samples({0, 1, 30, 30, 61});

inline const auto attend = residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2}));
inline const auto attend_all =
    residual(rms_norm(8) | bidirectional_attention({.features = 8, .heads = 2}));
inline const auto recur = residual(rms_norm(8) | gated_recurrence(8, 4));
inline const auto mlp = residual(rms_norm(8) | swiglu(8, 12));

inline auto language_model() {
  return embedding(19, 8) | attend | mlp | attend | rms_norm(8) | linear(8, 19);
}
inline auto blocks(position count) {
  return embedding(19, 8) | repeat(count, attend | mlp) | rms_norm(8) | linear(8, 19);
}
inline auto recurrent() { return recur | mlp | recur | linear(8, 5); }
inline auto bidirectional() { return attend_all | attend_all | linear(8, 5); }
inline auto mixed() { return attend_all | recur | attend | linear(8, 5); }
inline auto tied() { return embedding(19, 8) | mlp | attend | tied_linear{8, 19}; }
inline auto used_thrice() {
  return embedding(8, 8) | residual(tied_linear{8, 8}) | attend | tied_linear{8, 8};
}
inline auto partly_frozen() {
  return frozen(embedding(19, 8) | attend) | mlp | attend | frozen(rms_norm(8)) | linear(8, 5);
}

template <class Model, class Loss = cross_entropy>
using planner_of = planner<cpu::device<double>, Model, Loss>;

}  // namespace streambp::small
