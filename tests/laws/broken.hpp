// What a report says of a wrong layer.
#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/hold.hpp>
#include <string>

namespace streambp::laws {

// Names of the broken laws, each once.
inline std::string broken(const report& r) {
  std::string names;
  for (int l = 0; l < law_count; ++l)
    if (r.breaks(law(l))) names += (names.empty() ? "" : ", ") + std::string(name_of(law(l)));
  return names;
}

inline std::string text_of(const report& r) {
  std::ostringstream out;
  out << r;
  return out.str();
}

}  // namespace streambp::laws
