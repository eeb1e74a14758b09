// JSON strings and numbers against a well-kept reader of them.
#include <streambp/io/json.hpp>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "../core/lengths.hpp"

using namespace streambp;

namespace {

const std::string path = "file";

// What the reader makes of a text that is one string, or what it says against it.
std::string read(const std::string& text) {
  try {
    detail::json_reader reader(path, text, "made-up", "text");
    const std::string value = reader.string();
    reader.expect_whole();
    return value;
  } catch (const file_error& e) {
    return e.what();
  }
}
bool refused(const std::string& text) {
  return read(text).starts_with("file: is no made-up file: at byte ");
}

}  // namespace

TEST_CASE("strings are read as another library reads them, or refused where it refuses them") {
  const std::string parts[] = {
      "a",       "\\n", "\\\"",     "\\u00e9", "\\ud83d\\ude00", "\\ud83d",          "\\udE00",
      "\\u12g4", "\\x", "\xc3\xa9", "\xc3",    "\xed\xa0\x80",   "\xf4\x90\x80\x80", "\x1f",
      "\x7f",    "/"};
  dice draw{7};
  int taken = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = "\"";
    for (position n = draw(5); n > 0; --n) text += parts[draw(std::size(parts))];
    text += '"';
    CAPTURE(text);
    const auto other = nlohmann::json::parse(text, nullptr, false);
    CHECK(refused(text) == other.is_discarded());
    if (other.is_discarded()) continue;
    CHECK(read(text) == other.get<std::string>());
    ++taken;
  }
  CHECK(taken > 300);
}

TEST_CASE("what is written is what the other library reads") {
  dice draw{3};
  for (int trial = 0; trial < 500; ++trial) {
    std::string text;
    for (position n = draw(6); n > 0; --n) {
      const std::string parts[] = {"\"", "\\", std::string(1, char(draw(32))), "é", "𝄞", "z"};
      text += parts[draw(6)];
    }
    CHECK(nlohmann::json::parse(json_string(text)).get<std::string>() == text);
    CHECK(read(json_string(text)) == text);
  }
  CHECK_THROWS_WITH_AS(json_string("\xff"), "safetensors: '?' is not UTF-8", file_error);
}

TEST_CASE("whole numbers up to 2^64 - 1, and no others") {
  const auto number = [](const std::string& text) -> std::string {
    try {
      detail::json_reader reader(path, text, "made-up", "text");
      const std::uint64_t value = reader.number();
      reader.expect_whole();
      return std::to_string(value);
    } catch (const file_error& e) {
      return e.what();
    }
  };
  for (const std::string good : {"0", "7", "18446744073709551615"}) CHECK(number(good) == good);
  const std::string at = "file: is no made-up file: at byte ";
  CHECK(number("18446744073709551616") == at + "19 its text has numbers that pass 2^64");
  CHECK(number("184467440737095516150") == at + "20 its text has numbers that pass 2^64");
  for (const std::string bad : {"", "-1", "01", "x", ".5"})
    CHECK(number(bad).ends_with("has no whole number where one belongs"));
  CHECK(number("1.5") == at + "1 its text goes on behind its closing }");
}
