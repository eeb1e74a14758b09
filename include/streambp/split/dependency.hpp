// What an operator's read of row t may look at: the value that decides where a schedule must be
// cut.
#pragma once

#include <algorithm>

#include "../core/language.hpp"

namespace streambp {

// row: x[t]. past: what came before t in its segment, too. all: every row of its segment.
enum class reach : unsigned char { row, past, all };

inline constexpr reach row = reach::row;
inline constexpr reach past = reach::past;
inline constexpr reach all = reach::all;

struct dependency {
  reach sees = reach::row;
  bool carries = false;    // a state goes from row to row
  bool remembers = false;  // rows, or a total of them, are written for other tokens to read
  bool tallies = false;    // a sum over all tokens is a side loss
  bool crosses = false;    // rows of another stream are read

  // A read that sees all can start only when every row has been remembered.
  constexpr bool forces_cut() const { return sees == reach::all; }
  // An ascending sweep must visit the operator even when nobody wants its output.
  constexpr bool stateful() const { return carries || remembers; }
  constexpr bool operator==(const dependency&) const = default;
};

// The dependency of `second` after `first`.
constexpr dependency then(dependency first, dependency second) {
  return {std::max(first.sees, second.sees), first.carries || second.carries,
          first.remembers || second.remembers, first.tallies || second.tallies,
          first.crosses || second.crosses};
}

}  // namespace streambp
