// The exceptions of the library. Each message names the value, the place and the remedy.
#pragma once

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>

#include "language.hpp"

namespace streambp {

// Every exception that the library throws on purpose derives from this one.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Shapes, offsets or features that do not fit together.
struct shape_error : error {
  using error::error;
};

// A token, label, weight or parameter with a value that cannot be used.
struct data_error : error {
  using error::error;
};

// A loss or a gradient that is not finite though everything given was. What was added to the
// gradient is of no use.
struct numeric_error : error {
  using error::error;
};

// A file that cannot be read or written, or does not hold what is asked of it.
struct file_error : error {
  using error::error;
};

// No exact plan fits the budget; `least` bytes would do.
struct budget_error : error {
  std::size_t least;
  budget_error(const std::string& what, std::size_t least_bytes)
      : error(what), least(least_bytes) {}
};

// A sentence from its parts: sentence("x has ", 512, " features").
template <class... Part>
std::string sentence(const Part&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace streambp
