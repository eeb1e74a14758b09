// Random numbers that are a function of their place: the same draw, whoever asks for it and when.
#pragma once

#include <cstdint>

#include "position.hpp"

namespace streambp {

struct random_key {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;      // of the optimizer
  std::uint64_t sample = 0;    // the caller's id, unique within an accumulation window
  std::uint64_t instance = 0;  // of the layer
};

// Each bit of x flips about half of the result's (a 64-bit finalizer: Stafford's mix 13).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Adds a number to what is hashed so far; the odd step keeps small neighbours apart.
constexpr std::uint64_t mixed(std::uint64_t before, std::uint64_t next) {
  return mixed(before + (next + 1) * 0x9e3779b97f4a7c15);
}

// One key's position; its columns are a stream of their own.
constexpr std::uint64_t random_row(const random_key& key, position at) {
  return mixed(mixed(mixed(mixed(mixed(0, key.seed), key.step), key.sample), key.instance),
               std::uint64_t(at));
}

constexpr std::uint64_t random_bits(std::uint64_t row, position column) {
  return mixed(row, std::uint64_t(column));
}
constexpr std::uint64_t random_bits(const random_key& key, position at, position column) {
  return random_bits(random_row(key, at), column);
}

// In [0, 1), a multiple of 2^-53.
constexpr double uniform(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

}  // namespace streambp
