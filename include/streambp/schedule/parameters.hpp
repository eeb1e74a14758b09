// Where each parameter of a model stands in the flat buffers, and what it is called.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/position.hpp"
#include "../core/view.hpp"
#include "../split/slot.hpp"

namespace streambp {

struct parameter_info {
  std::string name;  // blocks.3.attention.query
  position rows = 0;
  position cols = 0;
  position offset = 0;     // in the parameter buffer
  position gradient = -1;  // offset in the gradient buffer; -1: frozen
  initial_value initial{};
  const void* tag = nullptr;

  position size() const { return rows * cols; }
};

struct parameter_table {
  std::vector<parameter_info> entries;
  position parameters = 0;  // scalars in the parameter buffer
  position gradients = 0;   // scalars in the gradient buffer; less by what is frozen

  // Rows or columns of one of them, at most.
  position longest_side() const {
    position longest = 0;
    for (const auto& entry : entries) longest = std::max({longest, entry.rows, entry.cols});
    return longest;
  }

  // Throws shape_error when there is none of that name.
  const parameter_info& operator[](const std::string& name) const {
    for (const auto& entry : entries)
      if (entry.name == name) return entry;
    std::string known;
    for (const auto& entry : entries) known += (known.empty() ? "" : ", ") + entry.name;
    throw shape_error(sentence("no parameter is named '", name, "'; there are ", known));
  }

  // A parameter in a buffer of parameters, by name; its gradient in a buffer of gradients.
  template <class Buffer>
  auto value_of(const std::string& name, Buffer& parameters_of) const {
    const parameter_info& p = (*this)[name];
    const std::span all(parameters_of);
    expect_size("value_of", all.size(), parameters);
    return view(all.data() + p.offset, p.rows, p.cols);
  }
  template <class Buffer>
  auto gradient_of(const std::string& name, Buffer& gradient) const {
    const parameter_info& p = (*this)[name];
    const std::span all(gradient);
    expect_size("gradient_of", all.size(), gradients);
    if (p.gradient < 0)
      throw shape_error(sentence("gradient_of: ", name, " is frozen; it has no gradient"));
    return view(all.data() + p.gradient, p.rows, p.cols);
  }

  // Throws shape_error when two parameters have one name.
  void expect_unique_names() const {
    std::set<std::string_view> known;
    for (const auto& entry : entries)
      if (!known.insert(entry.name).second)
        throw shape_error(sentence("two parameters are named '", entry.name,
                                   "'; named(\"...\", f) tells them apart"));
  }

  int add(parameter_info entry, bool trains) {
    entry.offset = parameters;
    parameters += entry.size();
    if (trains) {
      entry.gradient = gradients;
      gradients += entry.size();
    }
    entries.push_back(std::move(entry));
    return int(entries.size()) - 1;
  }

  // The one parameter of a tag that another layer shares.
  int owner(const void* tag, position rows, position cols, const std::string& user) const {
    int found = -1;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (entries[i].tag == tag) {
        if (found >= 0)
          throw shape_error(sentence(user, ": shares a parameter that two layers own, ",
                                     entries[std::size_t(found)].name, " and ", entries[i].name));
        found = int(i);
      }
    if (found < 0)
      throw shape_error(sentence(user, ": shares a parameter that no layer before it owns"));
    const auto& entry = entries[std::size_t(found)];
    if (entry.rows != rows || entry.cols != cols)
      throw shape_error(sentence(user, " is ", rows, " x ", cols, " but shares ", entry.name,
                                 ", which is ", entry.rows, " x ", entry.cols));
    return found;
  }

 private:
  static void expect_size(const char* what, std::size_t size, position wanted) {
    if (position(size) != wanted)
      throw shape_error(
          sentence(what, ": the buffer has ", size, " entries, the table has ", wanted));
  }
};

template <class Tag>
inline constexpr char tag_identity = 0;

}  // namespace streambp
