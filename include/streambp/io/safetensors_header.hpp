// The header of a safetensors file (github.com/huggingface/safetensors): which tensors it holds, of
// which type and shape, and where; read strictly, since files come from anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "json.hpp"

namespace streambp {

struct tensor_type {
  std::string_view name;
  std::uint64_t bytes;
};
inline constexpr tensor_type tensor_types[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
    {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};

struct tensor_entry {
  std::string name;
  tensor_type type{};
  std::vector<std::uint64_t> shape{};
  std::uint64_t first = 0, last = 0;  // bytes, counted from the end of the header

  std::uint64_t bytes() const { return last - first; }
};

struct tensor_header {
  std::vector<tensor_entry> tensors;  // as they lie in the file
  std::map<std::string, std::string> metadata;
};

namespace detail {

class header_reader {
 public:
  header_reader(const std::string& path, std::string_view text, std::uint64_t data)
      : path_(path), json_(path, text, "safetensors", "header"), data_(data) {
    if (!text.starts_with('{')) json_.refuse("does not start with {");
  }

  tensor_header read() {
    tensor_header header;
    json_.members([&](std::string name) {
      if (name == "__metadata__") {
        if (!std::exchange(metadata_, true))
          return json_.members([&](std::string key) {
            if (!header.metadata.emplace(std::move(key), json_.string()).second)
              json_.refuse("names one of its metadata twice");
          });
        json_.refuse("has metadata twice");
      }
      header.tensors.push_back(tensor(std::move(name)));
    });
    json_.expect_whole();
    expect_each_name_once(header.tensors);
    expect_no_holes(header.tensors);
    return header;
  }

 private:
  static constexpr std::size_t most_rank = 32;

  [[noreturn]] void refuse_tensor(const tensor_entry& t, const std::string& what) const {
    fail(path_, sentence("is no safetensors file: tensor '", shown(t.name), "' ", what));
  }

  tensor_entry tensor(std::string name) {
    tensor_entry t{.name = std::move(name)};
    bool type = false, shape = false, place = false;
    const auto once = [&](bool& seen) {
      if (std::exchange(seen, true)) refuse_tensor(t, "says one thing twice");
    };
    json_.members([&](const std::string& key) {
      if (key == "dtype") {
        once(type);
        t.type = type_named(t, json_.string());
      } else if (key == "shape") {
        once(shape);
        t.shape = json_.numbers(most_rank);
      } else if (key == "data_offsets") {
        once(place);
        const auto ends = json_.numbers(2);
        if (ends.size() != 2) refuse_tensor(t, "has one data offset, not two");
        t.first = ends[0];
        t.last = ends[1];
      } else {
        refuse_tensor(t, sentence("has a member '", shown(key), "'"));
      }
    });
    if (!type || !shape || !place) refuse_tensor(t, "lacks its dtype, shape or data_offsets");
    std::uint64_t bytes = t.type.bytes;
    for (const std::uint64_t extent : t.shape) bytes = json_.product(bytes, extent);
    if (t.last < t.first || t.bytes() != bytes)
      refuse_tensor(t, sentence("lies from ", t.first, " to ", t.last, ", its shape takes ", bytes,
                                " bytes"));
    return t;
  }
  tensor_type type_named(const tensor_entry& t, const std::string& name) const {
    std::string known;
    for (const tensor_type& type : tensor_types) {
      if (type.name == name) return type;
      known += sentence(known.empty() ? "" : ", ", type.name);
    }
    refuse_tensor(t, sentence("is of type '", shown(name), "'; known are ", known));
  }

  void expect_each_name_once(const std::vector<tensor_entry>& tensors) const {
    std::vector<std::string_view> names;
    for (const auto& t : tensors) names.push_back(t.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      fail(path_, sentence("is no safetensors file: two tensors are named '", shown(*twice), "'"));
  }
  void expect_no_holes(std::vector<tensor_entry>& tensors) const {
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first, a.last, a.name) < std::tie(b.first, b.last, b.name);
    });
    std::uint64_t end = 0;
    for (const auto& t : tensors) {
      if (t.first != end)
        refuse_tensor(t, sentence("lies at ", t.first, ", but what is before it ends at ", end));
      end = t.last;
    }
    if (end != data_)
      fail(path_, sentence("is no safetensors file: its tensors end at ", end, " of ", data_,
                           " bytes; was it cut short?"));
  }

  const std::string& path_;
  json_reader json_;
  std::uint64_t data_;  // bytes behind the header
  bool metadata_ = false;
};

}  // namespace detail

// Of the file `path`, with `data` bytes behind the header. Throws file_error for a header that is
// not valid: then the file must not be used.
inline tensor_header read_tensor_header(const std::string& path, std::string_view text,
                                        std::uint64_t data) {
  return detail::header_reader(path, text, data).read();
}

}  // namespace streambp
