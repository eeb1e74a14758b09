// y = x / (1 - rate) where kept, 0 where dropped; what is kept is a function of seed, step, sample,
// layer, position and column alone, so a replay drops the same.
#pragma once

#include "../core/error.hpp"
#include "../core/position.hpp"
#include "../primitives/dropout.hpp"

namespace streambp {

struct dropout_layer {
  static constexpr const char* name = "dropout";
  static constexpr bool counts_flops = true;
  static constexpr bool backward_reads_input = false, backward_reads_output = false;

  double rate;

  // Throws shape_error unless 0 <= rate < 1.
  explicit dropout_layer(double given) : rate(given) {
    if (!(rate >= 0 && rate < 1))
      throw shape_error(sentence("dropout: rate ", rate, " is not in [0, 1)"));
  }

  position features(position given) const {
    [[maybe_unused]] const dropout_layer checked(rate);  // it may have been changed since
    return given;
  }
  void forward(auto& at, auto x, auto y) const {
    if (at.wants_output) dropout(at.on, draw(at), at.pieces(), x, y);
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    add_dropout(at.on, draw(at), at.pieces(), dy, dx);
  }

 private:
  dropout_draw draw(const auto& at) const {
    return {rate, {at.chunk.seed, at.chunk.step, 0, at.instance}, at.chunk.sample_ids};
  }
};

inline dropout_layer dropout(double rate) { return dropout_layer(rate); }

}  // namespace streambp
