// What the entries that dropout keeps are a function of.
#pragma once

#include <cstdint>
#include <span>

#include "../core/random.hpp"

namespace streambp {

struct dropout_draw {
  double rate;                             // of entries dropped, in [0, 1]
  random_key key;                          // its sample is taken from `samples`
  std::span<const std::uint64_t> samples;  // id of each segment; empty: its number
};

}  // namespace streambp
