// y[t] = scale · table[token[t]]
#pragma once

#include "../split/slot.hpp"
#include "check.hpp"

namespace streambp {

struct embedding {
  struct table_tag {  // of its own: a tied head shares what has it
    static constexpr const char* name = "table";
  };
  static constexpr table_tag table{};
  static constexpr const char* name = "embedding";
  static constexpr bool counts_flops = true, takes_tokens = true, backward_reads_output = false;

  position vocabulary = 0;
  position width = 0;
  double scale = 1;

  embedding(position vocabulary, position width, double scale = 1)
      : vocabulary(vocabulary), width(width), scale(scale) {
    expect_positive(name, "vocabulary", vocabulary);
    expect_positive(name, "width", width);
    expect_finite(name, "scale", scale);
  }

  position features(position) const {
    [[maybe_unused]] const embedding checked(vocabulary, width, scale);  // members may have changed
    return width;
  }
  auto slots() const { return std::tuple{parameter(table, vocabulary, width, {0, 0.02})}; }

  void forward(auto& at, auto tokens, auto y) const {
    if (at.wants_output) gather(at.on, tokens, at[table], scale, y);
  }
  void backward(auto& at, auto tokens, auto, auto dy, auto) const {
    if (at.trains(table)) scatter_add(at.on, tokens, dy, scale, at.d(table));
  }
};

}  // namespace streambp
