// The JSON that headers of tensor files consist of: objects, strings, lists of whole numbers; read
// strictly, since files come from anywhere (RFC 8259).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "file.hpp"

namespace streambp {

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

// Reads a text from its start; what is wrong is a file_error of the file `path`.
class json_reader {
 public:
  // `kind`: of the file; `part`: of it that the text is. Both live as long as the reader.
  json_reader(const std::string& path, std::string_view text, const char* kind, const char* part)
      : path_(path), text_(text), kind_(kind), part_(part) {}

  [[noreturn]] void refuse(const std::string& what) const {
    fail(path_, sentence("is no ", kind_, " file: at byte ", at_, " its ", part_, " ", what));
  }
  void expect_whole() {
    space();
    if (at_ != text_.size()) refuse("goes on behind its closing }");
  }

  // Calls item() at each of what stands between `open` and `close`, with commas between.
  template <class Item>
  void items(char open, char close, Item&& item) {
    expect(open);
    if (take(close)) return;
    do item();
    while (take(','));
    expect(close);
  }
  // Calls member(name) at each value of an object; it reads the value.
  template <class Member>
  void members(Member&& member) {
    items('{', '}', [&] {
      std::string name = string();
      expect(':');
      member(std::move(name));
    });
  }

  // With its escapes resolved, in UTF-8.
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
  // A list of at most so many.
  std::vector<std::uint64_t> numbers(std::size_t most) {
    std::vector<std::uint64_t> all;
    items('[', ']', [&] {
      if (all.size() == most) refuse(sentence("has a list of more than ", most, " numbers"));
      all.push_back(number());
    });
    return all;
  }

  // Throw where 64 bits do not hold the result.
  std::uint64_t product(std::uint64_t a, std::uint64_t b) const {
    if (b != 0 && a > largest / b) refuse("has numbers that pass 2^64");
    return a * b;
  }
  std::uint64_t sum(std::uint64_t a, std::uint64_t b) const {
    if (a > largest - b) refuse("has numbers that pass 2^64");
    return a + b;
  }

 private:
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

  static constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

  const std::string& path_;
  std::string_view text_;
  const char *kind_, *part_;
  std::size_t at_ = 0;
};

}  // namespace detail

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
