#include <streambp/layers/dropout.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("dropout keeps the laws") {
  for (const double rate : {0.0, 0.1, 0.5}) {
    CAPTURE(rate);
    CHECK(laws::hold(dropout(rate), laws::rows(37, 8)));
  }
}

// One step of the optimizer drops other entries than the next, a sample others than its neighbour.
TEST_CASE("what is dropped depends on step, sample and layer") {
  laws::setting s = laws::rows(37, 8);
  s.twice = false;
  laws::engine_subject<double, dropout_layer, laws::functional<double>> of(dropout(0.5), {}, s);
  laws::given data = laws::data_for(of, s, 0);
  const step_plan plan = of.plans(s.samples, 0).streamed;
  const auto y = [&] { return of.run(plan)->step(data).tensors[0].data; };
  const std::vector<double> first = y();
  CHECK(y() == first);
  ++data.step;
  CHECK(y() != first);
  --data.step;
  ++data.seed;
  CHECK(y() != first);
  --data.seed;
  const std::uint64_t id = std::exchange(data.ids[2], 7);
  const std::vector<double> moved = y();
  for (position t = 0; t < 37; ++t) {
    const bool same =
        std::equal(first.begin() + t * 8, first.begin() + t * 8 + 8, moved.begin() + t * 8);
    if (s.samples.segment_at(t) != 2) CHECK(same);
  }
  CHECK(moved != first);
  data.ids[2] = id;

  // About half of the entries, and what is kept counts twice.
  position dropped = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    dropped += first[i] == 0;
    CHECK((first[i] == 0 || first[i] == 2 * data.rows[i]));
  }
  CHECK(dropped > 37 * 8 / 3);
  CHECK(dropped < 37 * 8 * 2 / 3);
}

TEST_CASE("dropout names a rate that it does not take") {
  CHECK(words_of([] { dropout(1); }) == "dropout: rate 1 is not in [0, 1)");
  CHECK(words_of([] { dropout(-0.1); }) == "dropout: rate -0.1 is not in [0, 1)");
}

}  // namespace
}  // namespace streambp
