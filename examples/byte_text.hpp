// A text as tokens: its bytes, windows of it, and the least that a model of single bytes can lose.
#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <streambp/core/random.hpp>

inline constexpr streambp::position byte_vocabulary = 256;

inline std::vector<std::int32_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()),
          reinterpret_cast<const unsigned char*>(text.data()) + text.size()};
}

// Throws std::runtime_error unless the file can be read and holds `least` bytes or more.
inline std::vector<std::int32_t> read_text(const std::string& path, streambp::position least) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad() || text.empty())
    throw std::runtime_error("the text '" + path + "' cannot be read or is empty");
  if (streambp::position(text.size()) < least)
    throw std::runtime_error("the text '" + path + "' has " + std::to_string(text.size()) +
                             " bytes, a sample has " + std::to_string(least) +
                             "; name a longer text or ask for fewer tokens");
  return bytes_of(text);
}

// −log p of each byte, p its share of the text, in nats; of a byte that the text does not hold,
// infinity.
inline std::vector<double> byte_losses(const std::vector<std::int32_t>& text) {
  std::vector<double> count(byte_vocabulary);
  for (const std::int32_t byte : text) ++count[std::size_t(byte)];
  for (double& n : count) n = std::log(double(text.size()) / n);
  return count;
}

// What a model that knows no more than these loses of each byte of `bytes`, on average.
inline double mean_loss(const std::vector<double>& losses, const std::vector<std::int32_t>& bytes) {
  double sum = 0;
  for (const std::int32_t byte : bytes) sum += losses[std::size_t(byte)];
  return sum / double(bytes.size());
}

// −Σ p log p over single bytes, in nats.
inline double byte_entropy(const std::vector<std::int32_t>& text) {
  return mean_loss(byte_losses(text), text);
}

// `tokens` bytes from a place that seed and step decide.
inline std::vector<std::int32_t> window_of(const std::vector<std::int32_t>& text,
                                           streambp::position tokens, std::uint64_t seed,
                                           streambp::position step) {
  const auto places = std::uint64_t(text.size()) - std::uint64_t(tokens) + 1;
  const auto first = streambp::position(
      streambp::random_bits({.seed = seed, .step = std::uint64_t(step)}, 0, 0) % places);
  return {text.begin() + first, text.begin() + first + tokens};
}
