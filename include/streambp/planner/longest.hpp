// The longest sequence that a budget has a plan for, and what stands in the way of the next.
#pragma once

#include <algorithm>
#include <vector>

#include "../schedule/plan.hpp"

namespace streambp {

// `samples` with `more` tokens behind the last one's end.
inline packed lengthened(const packed& samples, position more) {
  std::vector<position> offsets(samples.offsets().begin(), samples.offsets().end()), parents;
  offsets.back() += more;
  for (position s = 0; s < samples.segments(); ++s) parents.push_back(samples.parent(s));
  return samples.child_count() > 0 ? packed(std::move(offsets), std::move(parents))
                                   : packed(std::move(offsets));
}

// Makes the last sample longer, to twice the tokens and twice again at most 10 times, then halves
// what is left between a length that fits and one that does not, down to a grain or 1/64 of the
// tokens, never beyond `most` tokens. least(samples) is the byte_table of the least plan. Requires
// that the samples given fit.
template <class Least>
length_limit longest_sequence(const packed& samples, position grain, std::size_t budget,
                              position most, const Least& least) {
  const position tokens = samples.tokens(), step = std::max(grain, tokens / 64);
  length_limit limit{tokens, 0, {}};
  const auto try_length = [&](position length) {
    const byte_table bytes = least(lengthened(samples, length - tokens));
    if (bytes.total() <= budget) {
      limit.fits = length;
    } else {
      limit.next = length;
      limit.bytes = bytes;
    }
  };
  for (int doublings = 0; doublings < 10 && limit.next == 0 && limit.fits <= most / 2; ++doublings)
    try_length(2 * limit.fits);
  while (limit.next - limit.fits > step)
    try_length(limit.fits + (limit.next - limit.fits + step) / 2 / step * step);
  return limit;
}

}  // namespace streambp
