// The name of a slot, as a type: tag<"keys">.
#pragma once

#include <cstddef>

#include "../core/language.hpp"

namespace streambp {

// Text as a template argument that needs no deduction, which nvcc would refuse.
struct tag_text {
  char text[64]{};
  template <std::size_t N>
    requires(N <= 64)
  consteval tag_text(const char (&characters)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = characters[i];
  }
};

// Slots are told apart by their tags' types. Any type with such a name serves as a tag; one that is
// nobody else's, where another layer shares the parameter by its tag.
template <tag_text Name>
struct tag {
  static constexpr tag_text text = Name;
  static constexpr const char* name = text.text;
};

}  // namespace streambp
