#include <streambp/layers/embedding.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("an embedding keeps the laws, alone and with a head that shares its table") {
  CHECK(laws::hold(embedding(19, 8), laws::tokens(37, 19)));
  CHECK(laws::hold(embedding(7, 5, 2.5), laws::tokens(64, 7)));
  CHECK(laws::hold(embedding(19, 8) | tied_linear{8, 19}, laws::tokens(37, 19)));
}

TEST_CASE("an embedding and its tied head name what does not fit") {
  CHECK(words_of([] { embedding(0, 8); }) == "embedding: vocabulary is 0, it must be positive");
  CHECK(words_of([] { embedding(19, 0); }) == "embedding: width is 0, it must be positive");
  CHECK(words_of([] {
          laws::hold(embedding(19, 8) | tied_linear{8, 18}, laws::tokens(37, 19));
        }) == "tied_linear is 18 x 8 but shares embedding.table, which is 19 x 8");
  CHECK(words_of([] { laws::hold(embedding(19, 8), laws::rows(37, 0)); }) ==
        "laws: rows of 0 features; for a layer of tokens write laws::tokens(37, vocabulary)");
}

}  // namespace
}  // namespace streambp
