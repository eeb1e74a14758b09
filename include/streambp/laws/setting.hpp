// What a layer or loss is tried on: ragged samples and how wide their rows are.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "../core/error.hpp"
#include "../core/grain.hpp"
#include "tolerance.hpp"

namespace streambp::laws {

// Of data, unless a setting says otherwise: the environment's STREAMBP_LAWS_SEED, else 1. A
// right layer keeps the laws with every seed.
inline int first_seed() {
  const char* const said = std::getenv("STREAMBP_LAWS_SEED");
  if (said == nullptr) return 1;
  const std::string_view text(said);
  int seed = 0;
  if (const auto [end, fault] = std::from_chars(said, said + text.size(), seed);
      fault != std::errc() || end != said + text.size() || text.empty())
    throw shape_error(
        sentence("laws: STREAMBP_LAWS_SEED is \"", text, "\", it must be a whole number"));
  return seed;
}

struct setting {
  packed samples;
  position features = 0;    // of the input rows; 0: the layer takes tokens
  position vocabulary = 0;  // of tokens or labels
  geometry grains{8, 16};
  position prefix = 3;      // memory rows ahead of every sample, where a layer remembers
  int seed = first_seed();  // another one moves all data
  bool weights = false;     // of labels
  bool twice = true;        // two of the layer in a row, if its result is as wide as its input
  tolerance allowed{};
};

// Another stream's rows for samples that cross to one: none, then more and more.
inline packed beside(const packed& samples) {
  std::vector<position> offsets{0};
  for (position s = 0; s < samples.segments(); ++s) offsets.push_back(offsets.back() + 7 * (s % 3));
  return packed(std::move(offsets));
}

// Samples of one token, of about a third and of the rest, with empty ones before, between and
// after.
inline packed ragged(position tokens) {
  const position middle = 1 + (tokens - 1) * 13 / 36;
  return packed({0, 0, 1, middle, middle, tokens, tokens});
}

// Throws shape_error unless chunks, grains and tiles are all cut somewhere.
inline setting rows(position tokens, position features) {
  if (tokens < 1 || features < 0)
    throw shape_error(sentence("laws: ", tokens, " rows of ", features, " features; take 37 rows"));
  setting s{ragged(tokens), features};
  if (grain_edges(s.samples, s.grains.tile, s.grains.grain).size() < 4)
    throw shape_error(sentence("laws: ", tokens, " tokens make fewer than three grains; take 37"));
  return s;
}
inline setting tokens(position count, position vocabulary) {
  setting s = rows(count, 0);
  s.vocabulary = vocabulary;
  return s;
}

// Between -1 and 1, never nearer to 0 than 0.1: a kink at 0 is not crossed by small steps.
inline double wave(position i, position seed) {
  const double v = std::sin(double((31 * i * i + (7919 + 613 * seed) * i + 104729 * seed) % 10007));
  return v < 0 ? 0.9 * v - 0.1 : 0.9 * v + 0.1;
}

}  // namespace streambp::laws
