// The values that PyTorch computed, read back: README.md describes the files.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <streambp/core/position.hpp>
#include <string>
#include <vector>

#ifndef STREAMBP_REFERENCE_DIR
#define STREAMBP_REFERENCE_DIR "tests/reference"
#endif

namespace streambp {

inline nlohmann::json read_reference(const std::string& name) {
  std::ifstream file(std::string(STREAMBP_REFERENCE_DIR) + "/" + name + ".json");
  REQUIRE_MESSAGE(file.good(), "no reference ", name);
  return nlohmann::json::parse(file);
}

// Entry by entry what the file describes.
inline void append_values(const nlohmann::json& tensor, std::vector<double>& to) {
  position size = 1;
  for (const auto& extent : tensor["shape"]) size *= position(extent);
  const position seed = tensor["seed"];
  const double scale = tensor["scale"], offset = tensor["offset"];
  for (position i = 0; i < size; ++i) {
    const position angle = (31 * i * i + (7919 + 613 * seed) * i + 104729 * seed) % 10007;
    to.push_back(offset + scale * std::sin(double(angle)));
  }
}

// The largest difference, relative to the largest entry; NaN counts.
inline double error_of(const std::vector<double>& got, const std::vector<double>& right) {
  REQUIRE(got.size() == right.size());
  double off = 0, most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - right[i]);
    off = d <= off ? off : d;
    most = std::max(most, std::abs(right[i]));
  }
  return off / most;
}

}  // namespace streambp
