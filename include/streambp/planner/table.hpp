// Rows of a table of plain text, and numbers in words.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "../core/big_count.hpp"
#include "../core/error.hpp"
#include "../core/position.hpp"

namespace streambp::printing {

// A row of the table: its label or nothing, then cells of fixed widths.
inline std::string table_row(const char* label,
                             const std::vector<std::pair<std::string, int>>& cells) {
  std::string line = label;
  line.resize(10, ' ');
  for (const auto& [text, width] : cells) {  // a negative width: the text stands on the right
    const std::size_t pad = std::size_t(std::max(std::abs(width) - int(text.size()), 0));
    line += width < 0 ? std::string(pad, ' ') + text : text + std::string(pad, ' ');
    line += "  ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

inline std::string table_row(const char* label, const std::string& text) {
  return table_row(label, std::vector<std::pair<std::string, int>>{{text, 0}});
}

inline std::string percent(double part, double whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0);
  return text;
}
inline std::string percent(std::size_t part, std::size_t whole) {
  return percent(double(part), double(whole));
}

// "738.1 GFLOP"
inline std::string flops_in_words(big_count flops) {
  constexpr const char* unit[] = {"FLOP",  "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP",
                                  "EFLOP", "ZFLOP", "YFLOP", "RFLOP", "QFLOP"};
  double value = double(flops);
  int power = 0;
  for (; value >= 1000 && power < 10; ++power) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, power == 0 ? "%.0f %s" : "%.4g %s", value, unit[power]);
  return text;
}

// "1 chunk", "32 chunks"
inline std::string counted(position n, const char* what) {
  return sentence(n, " ", what, n == 1 ? "" : "s");
}

}  // namespace streambp::printing
