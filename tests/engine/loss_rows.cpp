// Which rows predict which labels, against a loop over samples.
#include <streambp/engine/loss_rows.hpp>

#include <doctest/doctest.h>

#include <streambp/losses/cross_entropy.hpp>
#include <streambp/losses/preference.hpp>

#include <string>
#include <vector>

#include "../core/lengths.hpp"

using namespace streambp;

namespace {

struct targets_of {
  std::vector<std::int32_t> first, targets;
  std::vector<label_place> places;
  std::vector<double> weights;

  targets_of(const packed& samples, const batch<double>& data, row_range rows, double scale) {
    const auto n = std::size_t(rows.rows());
    first.resize(n + 1);
    targets.resize(n);
    places.resize(n);
    weights.resize(n);
    std::vector<double> scales(std::size_t(samples.segments()), scale);
    const target_rows to{{first.data(), rows.rows() + 1, 1},
                         {targets.data(), rows.rows(), 1},
                         {places.data(), rows.rows(), 1},
                         {weights.data(), rows.rows(), 1}};
    fill_targets(cross_entropy{}, samples, data, rows, {scales.data(), samples.segments(), 1}, to);
  }
};

struct of_rows {
  double rows(auto&, position, auto) const { return 0; }
};

}  // namespace

TEST_CASE("targets: row t - 1 predicts label t of its own sample, wherever the rows are cut") {
  dice draw(11);
  for (int round = 0; round < 200; ++round) {
    const packed samples = random_samples(draw, 8);
    const position n = samples.tokens();
    std::vector<std::int32_t> labels;
    std::vector<double> weights;
    for (position t = 0; t < n; ++t) {
      labels.push_back(draw(3) == 0 ? -100 : std::int32_t(draw(9)));
      weights.push_back(double(draw(3)));
    }
    batch<double> data;
    data.labels = labels;
    data.weights = weights;
    const position begin = draw(n + 1), end = begin + draw(n - begin + 1);
    const targets_of found(samples, data, {begin, end}, 0.5);

    std::size_t next = 0;
    for (position row = begin; row < end; ++row) {
      REQUIRE(found.first[std::size_t(row - begin)] == std::int32_t(next));
      const position s = samples.segment_at(row), label = row + 1;
      const auto i = std::size_t(label);
      if (label == samples.segment(s).last || labels[i] == -100 || weights[i] == 0) continue;
      REQUIRE(found.targets[next] == labels[i]);
      REQUIRE(found.weights[next] == 0.5 * weights[i]);
      REQUIRE(found.places[next].row == label);
      REQUIRE(found.places[next].segment == s);
      REQUIRE(found.places[next].index == label - samples.segment(s).first);
      ++next;
    }
    REQUIRE(found.first.back() == std::int32_t(next));
  }
}

TEST_CASE("targets: a parent's last row predicts the first label of each of its own children") {
  // A prompt of 4 rows; children of 2, none and 3; another prompt of 2 with a child of 1.
  const packed samples({0, 4, 6, 6, 9, 11, 12}, {-1, 0, 0, 0, -1, 4});
  const std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  batch<double> data;
  data.labels = labels;
  const targets_of all(samples, data, {0, 12}, 1);
  CHECK(all.first == std::vector<std::int32_t>{0, 1, 2, 3, 5, 6, 6, 7, 8, 8, 9, 10, 10});
  CHECK(std::vector(all.targets.begin(), all.targets.begin() + 10) ==
        std::vector<std::int32_t>{1, 2, 3, 4, 6, 5, 7, 8, 10, 11});
  CHECK(all.places[4].segment == 3);
  CHECK(all.places[4].index == 0);
  CHECK(normaliser_of(cross_entropy{}, samples, data) == 10);
}

TEST_CASE("labels: the first outside the vocabulary is named, with its place") {
  const packed samples({0, 2, 4});
  const std::vector<std::int32_t> labels{0, 6, -100, 7};
  batch<double> data;
  data.labels = labels;
  CHECK_NOTHROW(check_labels(cross_entropy{}, samples, data, 8));
  try {
    check_labels(cross_entropy{}, samples, data, 7);
    FAIL("a label of 7 in a vocabulary of 7 was accepted");
  } catch (const data_error& e) {
    CHECK(std::string(e.what()).starts_with(
        "batch: label 7 at token 3 (sample 1, position 1) is outside the vocabulary of 7"));
  }
}

TEST_CASE("normalisers: what counts in a batch, by each kind of mean") {
  const packed samples({0, 3, 3, 4, 8});
  const std::vector<std::int32_t> labels{1, 2, -100, 4, 5, 6, -100, 7};
  batch<double> data;
  data.labels = labels;
  const auto by = [&](over average) {
    return normaliser_of(cross_entropy{.average = average}, samples, data);
  };
  CHECK(by(over::tokens) == 3);   // labels 2, 6 and 7: first ones are not predicted
  CHECK(by(over::samples) == 2);  // the sample of one row has nothing to score
  CHECK(by(over::nothing) == 1);
  const std::vector<double> weights{1, 0.5, 1, 1, 1, 0, 1, 2};
  data.weights = weights;
  CHECK(by(over::tokens) == 2.5);
  CHECK(by(over::samples) == 2);

  std::vector<double> scales(4);
  const view<double> to{scales.data(), 4, 1};
  fill_segment_scales(cross_entropy{}, samples, data, to);
  CHECK(scales == std::vector{0.4, 0.0, 0.0, 0.4});  // 0: nothing counts there
  fill_segment_scales(cross_entropy{.average = over::samples}, samples, data, to);
  CHECK(scales == std::vector{1.0, 0.0, 0.0, 0.25});  // 1 / (2 samples x own weight)
  data.normaliser = 10;
  fill_segment_scales(cross_entropy{}, samples, data, to);
  CHECK(scales[0] == 0.1);

  // A parent counts by its children, and a child for itself alone.
  const packed family({0, 3, 3, 4, 8}, {-1, -1, 0, 0});
  const std::vector<std::int32_t> of_last{-100, -100, -100, -100, -100, -100, -100, 7};
  data.labels = of_last;
  fill_segment_scales(cross_entropy{}, family, data, to);
  CHECK(scales == std::vector{0.1, 0.0, 0.0, 0.1});
}

TEST_CASE("a step's part of its window: what it counts over the normaliser, by each kind of loss") {
  const packed samples({0, 3, 3, 4, 8});
  std::vector<std::int32_t> labels{1, 2, -100, 4, 5, 6, -100, 7};
  const std::vector<double> weights{1, 0.5, 1, 1, 1, 0, 1, 2};
  batch<double> data;
  data.labels = labels;
  const auto parts = [&] {
    return std::vector{share_of_window(cross_entropy{}, samples, data),
                       share_of_window(cross_entropy{.average = over::samples}, samples, data),
                       share_of_window(cross_entropy{.average = over::nothing}, samples, data),
                       share_of_window(direct_preference{}, samples, data),
                       share_of_window(of_rows{}, samples, data)};
  };
  CHECK(parts() == std::vector<double>{1, 1, 1, 1, 1});
  data.normaliser = 16;
  CHECK(parts() == std::vector{3 / 16., 2 / 16., 1 / 16., 1 / 16., 8 / 16.});
  data.weights = weights;
  CHECK(parts() == std::vector{2.5 / 16, 2 / 16., 1 / 16., 1 / 16., 8 / 16.});
  // Labels that nothing predicts do not count; rows do.
  for (std::size_t t = 1; t < labels.size(); ++t) labels[t] = t == 3 || t == 4 ? 1 : -100;
  CHECK(parts() == std::vector{0., 0., 0., 0., 8 / 16.});
  data.normaliser = 0;
  CHECK(parts() == std::vector<double>{0, 0, 0, 0, 1});
}
