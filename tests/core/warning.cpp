#include <streambp/core/warning.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace streambp;

TEST_CASE("warnings go to the sink that is set, which may set another or be none") {
  std::vector<std::string> said;
  const warning_sink before = set_warning_sink([&](std::string_view text) {
    said.emplace_back(text);
    set_warning_sink([&](std::string_view later) { said.emplace_back(std::string(later) + "!"); });
  });
  warn("first");
  warn("second");
  set_warning_sink({});
  warn("third");
  CHECK(said == std::vector<std::string>{"first", "second!"});
  set_warning_sink(before);
}
