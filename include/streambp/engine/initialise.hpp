// Parameters at the start: the same on every machine, and whatever else the model holds.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "../core/random.hpp"
#include "../schedule/parameters.hpp"

namespace streambp {

// Twelve uniform numbers of 16 bits, summed: mean 0, deviation 1 and close to normal, never
// beyond 6. Integer arithmetic and one exact division, where a logarithm would differ between
// libraries.
constexpr double near_normal(std::uint64_t row, position column) {
  std::uint64_t sum = 0;
  for (position draw = 0; draw < 3; ++draw)
    for (std::uint64_t bits = random_bits(row, 3 * column + draw), i = 0; i < 4; ++i, bits >>= 16)
      sum += bits & 0xffff;
  return (double(sum) - 6 * 65535.) / 65536;
}

// A parameter is known by its name: one more layer elsewhere leaves its start as it is.
constexpr std::uint64_t random_name(std::string_view name) {
  std::uint64_t hash = 0;
  for (const char c : name) hash = mixed(hash, std::uint64_t(static_cast<unsigned char>(c)));
  return hash;
}

// mean + deviation · z by each layer's initial_value, in the order of the table's offsets.
template <class Scalar>
std::vector<Scalar> initial_parameters(const parameter_table& table, std::uint64_t seed) {
  std::vector<Scalar> parameters(std::size_t(table.parameters));
  for (const parameter_info& p : table.entries) {
    const random_key key{seed, 0, 0, random_name(p.name)};
    Scalar* at = parameters.data() + p.offset;
    for (position i = 0; i < p.rows; ++i) {
      const std::uint64_t row = random_row(key, i);
      for (position j = 0; j < p.cols; ++j)
        *at++ = Scalar(std::fma(p.initial.deviation, near_normal(row, j), p.initial.mean));
    }
  }
  return parameters;
}

}  // namespace streambp
