// The header of a safetensors file (github.com/huggingface/safetensors): which tensors it holds, of
// which type and shape, and where; read strictly, since files come from anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "file.hpp"

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

// The bytes of the code point that starts at text[i], or 0 where none does (RFC 3629).
inline std::size_t code_point(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) {
    return i + k < text.size() ? unsigned(static_cast<unsigned char>(text[i + k])) : 0u;
  };
  const auto in = [&](std::size_t k, unsigned least = 0x80, unsigned most = 0xBF) {
    return byte(k) >= least && byte(k) <= most;
  };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return in(1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF)
    return in(1, b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF) && in(2) ? 3 : 0;
  if (b >= 0xF0 && b <= 0xF4)
    return in(1, b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF) && in(2) && in(3) ? 4 : 0;
  return 0;
}

// Reads the JSON that headers consist of: objects, strings, lists of whole numbers.
class header_reader {
 public:
  header_reader(const std::string& path, std::string_view text, std::uint64_t data)
      : path_(path), text_(text), data_(data) {}

  tensor_header read() {
    tensor_header header;
    if (text_.empty() || text_[0] != '{') refuse("does not start with {");
    members([&](std::string name) {
      if (name == "__metadata__") {
        if (!std::exchange(metadata_, true))
          return members([&](std::string key) {
            if (!header.metadata.emplace(std::move(key), string()).second)
              refuse("names one of its metadata twice");
          });
        refuse("has metadata twice");
      }
      header.tensors.push_back(tensor(std::move(name)));
    });
    space();
    if (at_ != text_.size()) refuse("goes on behind its closing }");
    expect_each_name_once(header.tensors);
    expect_no_holes(header.tensors);
    return header;
  }

 private:
  static constexpr std::size_t most_rank = 32;

  [[noreturn]] void refuse(const std::string& what) const {
    fail(path_, sentence("is no safetensors file: at byte ", at_, " its header ", what));
  }
  [[noreturn]] void refuse_tensor(const tensor_entry& t, const std::string& what) const {
    fail(path_, sentence("is no safetensors file: tensor '", shown(t.name), "' ", what));
  }

  void space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(char letter) {
    space();
    const bool there = at_ < text_.size() && text_[at_] == letter;
    at_ += there;
    return there;
  }
  void expect(char letter) {
    if (!take(letter)) refuse(sentence("lacks ", letter));
  }
  template <class Item>
  void items(char open, char close, Item&& item) {
    expect(open);
    if (take(close)) return;
    do item();
    while (take(','));
    expect(close);
  }
  template <class Member>
  void members(Member&& member) {
    items('{', '}', [&] {
      std::string name = string();
      expect(':');
      member(std::move(name));
    });
  }

  std::string string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        escape(out);
        continue;
      }
      const std::size_t bytes = code_point(text_, at_);
      if (bytes == 0 || (text_[at_] >= 0 && text_[at_] < ' ')) refuse("has text that is not UTF-8");
      out += text_.substr(at_, bytes);
      at_ += bytes;
    }
    expect('"');
    return out;
  }
  void escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt", means = "\"\\/\b\f\n\r\t";
    const char letter = ++at_ < text_.size() ? text_[at_] : ' ';
    ++at_;
    if (const auto i = letters.find(letter); i != letters.npos) {
      out += means[i];
      return;
    }
    if (letter != 'u') refuse("has an escape that JSON has not");
    std::uint32_t code = hex();
    if (code >= 0xD800 && code <= 0xDBFF) {
      if (text_.substr(at_, 2) != "\\u") refuse("has half a surrogate pair");
      at_ += 2;
      const std::uint32_t low = hex();
      if (low < 0xDC00 || low > 0xDFFF) refuse("has half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      refuse("has half a surrogate pair");
    }
    const auto put = [&](std::uint32_t byte) { out += char(byte); };
    const auto rest = [&](int shift) { put(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | (code >> 6)), rest(0);
    } else if (code < 0x10000) {
      put(0xE0 | (code >> 12)), rest(6), rest(0);
    } else {
      put(0xF0 | (code >> 18)), rest(12), rest(6), rest(0);
    }
  }
  std::uint32_t hex() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : ' ';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) refuse("has an escape that JSON has not");
      code = code * 16 + std::uint32_t(digit);
    }
    return code;
  }

  std::uint64_t number() {
    space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      value = sum(product(value, 10), std::uint64_t(text_[at_] - '0'));
    if (at_ == start || (text_[start] == '0' && at_ > start + 1))
      refuse("has no whole number where one belongs");
    return value;
  }
  std::vector<std::uint64_t> numbers(std::size_t most) {
    std::vector<std::uint64_t> all;
    items('[', ']', [&] {
      if (all.size() == most) refuse(sentence("has a list of more than ", most, " numbers"));
      all.push_back(number());
    });
    return all;
  }

  static constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t product(std::uint64_t a, std::uint64_t b) const {
    if (b != 0 && a > largest / b) refuse("has numbers that pass 2^64");
    return a * b;
  }
  std::uint64_t sum(std::uint64_t a, std::uint64_t b) const {
    if (a > largest - b) refuse("has numbers that pass 2^64");
    return a + b;
  }

  tensor_entry tensor(std::string name) {
    tensor_entry t{.name = std::move(name)};
    bool type = false, shape = false, place = false;
    const auto once = [&](bool& seen) {
      if (std::exchange(seen, true)) refuse_tensor(t, "says one thing twice");
    };
    members([&](const std::string& key) {
      if (key == "dtype") {
        once(type);
        t.type = type_named(t, string());
      } else if (key == "shape") {
        once(shape);
        t.shape = numbers(most_rank);
      } else if (key == "data_offsets") {
        once(place);
        const auto ends = numbers(2);
        if (ends.size() != 2) refuse_tensor(t, "has one data offset, not two");
        t.first = ends[0];
        t.last = ends[1];
      } else {
        refuse_tensor(t, sentence("has a member '", shown(key), "'"));
      }
    });
    if (!type || !shape || !place) refuse_tensor(t, "lacks its dtype, shape or data_offsets");
    std::uint64_t bytes = t.type.bytes;
    for (const std::uint64_t extent : t.shape) bytes = product(bytes, extent);
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
  std::string_view text_;
  std::uint64_t data_;  // bytes behind the header
  std::size_t at_ = 0;
  bool metadata_ = false;
};

}  // namespace detail

// Of the file `path`, with `data` bytes behind the header. Throws file_error for a header that is
// not valid: then the file must not be used.
inline tensor_header read_tensor_header(const std::string& path, std::string_view text,
                                        std::uint64_t data) {
  return detail::header_reader(path, text, data).read();
}

// A JSON string. Throws file_error unless the text is UTF-8.
inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = detail::code_point(text, i);
    if (bytes == 0) throw file_error("safetensors: '" + shown(text) + "' is not UTF-8");
    const auto letter = static_cast<unsigned char>(text[i]);
    if (letter < ' ') {
      constexpr const char* digits = "0123456789abcdef";
      out += std::string("\\u00") + digits[letter >> 4] + digits[letter & 15];
    } else {
      if (letter == '"' || letter == '\\') out += '\\';
      out += text.substr(i, bytes);
    }
    i += bytes;
  }
  return out + '"';
}

}  // namespace streambp
