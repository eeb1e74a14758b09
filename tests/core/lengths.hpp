// Samples of chosen and of random lengths.
#pragma once

#include <cstdint>
#include <streambp/core/packed.hpp>
#include <vector>

namespace streambp {

inline packed packed_lengths(const std::vector<position>& lengths) {
  std::vector<position> offsets{0};
  for (const position n : lengths) offsets.push_back(offsets.back() + n);
  return packed(offsets);
}

// A sequence of numbers in [0, n), the same on every machine.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  position operator()(position n) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return position((state_ >> 33) % std::uint64_t(n));
  }

 private:
  std::uint64_t state_;
};

// 1 to 9 samples: empty, of one row, of a whole tile and its neighbours, or of up to 90 rows.
inline packed random_samples(dice& draw, position tile) {
  std::vector<position> lengths(std::size_t(1 + draw(9)));
  for (position& n : lengths) {
    const position choices[] = {0, 1, tile - 1, tile, tile + 1, draw(90)};
    n = choices[draw(6)];
  }
  return packed_lengths(lengths);
}

}  // namespace streambp
