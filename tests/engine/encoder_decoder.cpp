#include <streambp/engine/encoder_decoder.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/engine_subject.hpp>
#include <streambp/streambp.hpp>

#include "../core/lengths.hpp"
#include "../planner/choices.hpp"
#include "../unreachable_device.hpp"

using namespace streambp;

namespace {

constexpr position width = 8, letters = 7;
const geometry grains{8, 16};
// A sample with nothing to read, one with nothing to say.
const packed source = packed_lengths({5, 23, 0, 31, 9}),
             target = packed_lengths({12, 1, 25, 40, 0});

auto encoder() {
  return embedding(letters, width) | residual(gated_recurrence(width, 5)) |
         residual(rms_norm(width) | bidirectional_attention({.features = width, .heads = 2})) |
         rms_norm(width);
}
auto decoder() {
  return embedding(letters, width) |
         residual(rms_norm(width) |
                  causal_attention({.features = width, .heads = 2, .rotary = 100})) |
         residual(rms_norm(width) | cross_attention({.features = width, .heads = 2})) |
         residual(swiglu(width, 12)) | linear(width, letters);
}
using encoder_type = decltype(encoder());
using decoder_type = decltype(decoder());

template <class Scalar>
struct two_models {
  using step_type = encoder_decoder<Scalar, encoder_type, decoder_type, cross_entropy>;
  using bridge = typename step_type::bridge;
  using below = planner<cpu::device<Scalar>, encoder_type, bridge>;
  using above = planner<cpu::device<Scalar>, decoder_type, cross_entropy>;

  packed from = source, to = target;
  std::vector<std::int32_t> read, written;
  std::vector<Scalar> parameters;
  instance_list<encoder_type> encoder_list{encoder(), 0};
  instance_list<decoder_type> decoder_list{decoder(), 0};
  double normaliser = 0;

  explicit two_models(int seed = 1) {
    dice draw{std::uint64_t(seed)};
    for (position t = 0; t < from.tokens(); ++t) read.push_back(std::int32_t(draw(letters)));
    for (position t = 0; t < to.tokens(); ++t) written.push_back(std::int32_t(draw(letters)));
    for (const auto* table : {&encoder_list.table, &decoder_list.table})
      for (const auto& e : table->entries)
        for (position i = 0; i < e.size(); ++i)
          parameters.push_back(Scalar(e.initial.mean + 0.4 * (double(draw(2001)) / 1000 - 1)));
  }

  plan_options options(int threads) const { return {.threads = threads, .grains = grains}; }
  below encoder_planner(int threads = 1) const { return {encoder(), from, options(threads)}; }
  above decoder_planner(int threads = 1) const {
    plan_options o = options(threads);
    o.context = from;
    o.context_features = width;
    return {decoder(), to, o};
  }
  encoder_decoder_plan<Scalar> joined(const step_plan& e, const step_plan& d) const {
    return {{e}, {d}, std::size_t(2 * from.tokens() * width) * sizeof(Scalar)};
  }
  encoder_decoder_plan<Scalar> plain() const {
    return joined(encoder_planner().plain(), decoder_planner().plain());
  }

  batch<Scalar> source_data() const {
    batch<Scalar> b;
    b.tokens = read;
    return b;
  }
  batch<Scalar> target_data() const {
    batch<Scalar> b;
    b.tokens = b.labels = written;
    b.normaliser = normaliser;
    return b;
  }
  std::size_t gradients() const {
    return std::size_t(encoder_list.table.gradients + decoder_list.table.gradients);
  }
};

template <class Scalar>
struct outcome {
  double value = 0;
  std::vector<Scalar> gradient;
  bool operator==(const outcome& o) const {
    return std::memcmp(&value, &o.value, sizeof value) == 0 &&
           gradient.size() == o.gradient.size() &&
           std::memcmp(gradient.data(), o.gradient.data(), gradient.size() * sizeof(Scalar)) == 0;
  }
};

// After a step on other data, whose remains nobody may see.
template <class Scalar>
outcome<Scalar> run(const two_models<Scalar>& t, const encoder_decoder_plan<Scalar>& p) {
  encoder_decoder step(p, encoder(), decoder(), cross_entropy{});
  CHECK(step.high_water() == p.peak());
  const two_models<Scalar> other(2);
  outcome<Scalar> out;
  if (t.from == other.from) {
    out.gradient.resize(t.gradients());
    step.add_gradient(other.parameters, other.source_data(), other.target_data(), out.gradient);
  }
  out.gradient.assign(t.gradients(), Scalar(0));
  const big_count before = step.flops();
  const std::int64_t asked = laws::allocations;
  out.value = step.add_gradient(t.parameters, t.source_data(), t.target_data(), out.gradient);
  CHECK(laws::allocations == asked);
  const bool counts = share_of_window(cross_entropy{}, t.to, t.target_data()) > 0;
  CHECK(step.flops() - before == (counts ? p.flops() : 0));  // else nothing runs
  const double value = step.value(t.parameters, t.source_data(), t.target_data());
  CHECK(laws::allocations == asked);
  CHECK(std::memcmp(&value, &out.value, sizeof value) == 0);
  return out;
}

// Every stride-th choice of one planner.
template <class Planner, class F>
void some_plans(Planner one, Planner two, position stride, const F& f) {
  position number = 0;
  choice_space space{{1, 40, 1000}, {1, 1000}};
  for_each_choice(one.model(), space, [&](plan_choice c) {
    if (number++ % stride != 0) return;
    c.fuses_head = false;  // the encoder's rows are all needed first
    for (stage_plan& s : c.stages)
      if (s.keeps_chunk) s.keeps_memory = true;
    f((number / stride % 2 == 0 ? one : two).complete(c));
  });
}

double largest(std::span<const double> v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

}  // namespace

TEST_CASE_TEMPLATE("encoder-decoder: the bits do not depend on either plan", S, float, double) {
  const two_models<S> t;
  const auto expected = run(t, t.plain());
  REQUIRE(std::isfinite(expected.value));
  const step_plan small = *t.decoder_planner(2).search(true);
  CHECK(run(t, t.joined(t.encoder_planner().checkpointing(), small)) == expected);
  position runs = 0;
  some_plans(t.encoder_planner(1), t.encoder_planner(2), 61, [&](const step_plan& e) {
    CHECK(run(t, t.joined(e, small)) == expected);
    ++runs;
  });
  const step_plan plain = t.encoder_planner().plain();
  some_plans(t.decoder_planner(1), t.decoder_planner(2), 61, [&](const step_plan& d) {
    CHECK(run(t, t.joined(plain, d)) == expected);
    ++runs;
  });
  CHECK(runs > 40);
}

TEST_CASE("encoder-decoder: on memory that the host cannot touch") {
  using far = unreachable::device<double>;
  const two_models<double> t;
  const auto p = t.joined(t.encoder_planner().checkpointing(), *t.decoder_planner(2).search(true));
  encoder_decoder<double, encoder_type, decoder_type, cross_entropy, far> step(
      p, encoder(), decoder(), cross_entropy{});
  const unreachable::buffer<double> parameters(std::span<const double>(t.parameters)),
      gradient(std::span<const double>(std::vector<double>(t.gradients())));
  const double value =
      step.add_gradient(parameters.span(), t.source_data(), t.target_data(), gradient.span());
  CHECK(outcome<double>{value, gradient.copy()} == run(t, t.plain()));
}

TEST_CASE("encoder-decoder: as two engines, one after the other and back") {
  const two_models<double> t;
  const auto expected = run(t, t.plain());
  const std::span<const double> all(t.parameters);
  const auto own = std::size_t(t.encoder_list.table.parameters);
  const position rows = source.tokens();
  std::vector<double> context(std::size_t(rows * width)), d_context(context.size());
  const view<const double> none(d_context.data(), rows, width);

  using functional = laws::functional<double>;
  using encoder_planner = planner<cpu::device<double>, encoder_type, functional>;
  const step_plan p = encoder_planner(encoder(), source, t.options(1)).plain();
  engine<double, encoder_type, functional> reader({p}, encoder(),
                                                  functional{none, {context.data(), rows, width}});
  std::vector<double> gradient(t.gradients());
  reader.value(all.first(own), t.source_data());

  engine<double, decoder_type, cross_entropy> writer({t.decoder_planner().plain()}, decoder(), {});
  batch<double> data = t.target_data();
  data.context = {context.data(), rows, width};
  data.d_context = {d_context.data(), rows, width};
  const auto part = std::span(gradient);
  const auto encoder_gradients = std::size_t(t.encoder_list.table.gradients);
  const double value = writer.add_gradient(all.subspan(own), data, part.subspan(encoder_gradients));
  reader.add_gradient(all.first(own), t.source_data(), part.first(encoder_gradients));
  CHECK(outcome<double>{value, gradient} == expected);
}

TEST_CASE("encoder-decoder: central differences") {
  two_models<double> t;
  const auto p = t.joined(*t.encoder_planner(2).search(true), *t.decoder_planner(2).search(true));
  REQUIRE(p.encoder.chunk_count() >= 3);
  REQUIRE(p.decoder.chunk_count() >= 3);
  const auto out = run(t, p);
  encoder_decoder step(p, encoder(), decoder(), cross_entropy{});
  position offset = 0;
  for (const auto* table : {&t.encoder_list.table, &t.decoder_list.table}) {
    for (const auto& e : table->entries) {
      INFO("tensor ", e.name, " of the ", offset == 0 ? "encoder" : "decoder");
      const auto gradient =
          std::span(out.gradient).subspan(std::size_t(offset + e.gradient), std::size_t(e.size()));
      const double most = largest(gradient);
      REQUIRE(most > 0);
      for (position i = 0; i < e.size(); i += 1 + e.size() / 12) {
        double& x = t.parameters[std::size_t(offset + e.offset + i)];
        const double at = x, h = 1e-3;
        const auto value = [&](double by) {
          x = at + by;
          const double v = step.value(t.parameters, t.source_data(), t.target_data());
          x = at;
          return v;
        };
        const double slope =
            (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h);
        CHECK(std::abs(slope - gradient[std::size_t(i)]) < 1e-7 * most);
      }
    }
    offset += table->parameters;
  }
}

TEST_CASE("encoder-decoder: a batch is the sum of its samples") {
  two_models<double> t;
  t.normaliser = 40;
  const auto whole = run(t, t.plain());
  std::vector<double> gradient(whole.gradient.size(), 0);
  double value = 0;
  for (position s = 0; s < source.segments(); ++s) {
    const row_range reads = source.segment(s), writes = target.segment(s);
    if (reads.rows() == 0 || writes.rows() == 0) continue;
    two_models<double> one = t;
    one.from = packed::one(reads.rows());
    one.to = packed::one(writes.rows());
    one.read = {t.read.begin() + reads.first, t.read.begin() + reads.last};
    one.written = {t.written.begin() + writes.first, t.written.begin() + writes.last};
    const auto out = run(one, one.plain());
    value += out.value;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += out.gradient[i];
  }
  // The sample that reads nothing has no plan of its own: its part is what is missing.
  two_models<double> rest = t;
  const auto data = [&](two_models<double>& of) {
    std::vector<std::int32_t> labels = of.written;
    for (position i = target.segment(2).first; i < target.segment(2).last; ++i)
      labels[std::size_t(i)] = -100;
    return labels;
  };
  const auto labels = data(rest);
  encoder_decoder step(rest.plain(), encoder(), decoder(), cross_entropy{});
  batch<double> to = rest.target_data();
  to.labels = labels;
  std::vector<double> expected(gradient.size());
  const double expected_value =
      step.add_gradient(rest.parameters, rest.source_data(), to, expected);
  CHECK(value == doctest::Approx(expected_value).epsilon(1e-13));
  CHECK(expected_value < whole.value);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= expected[i];
  CHECK(largest(gradient) < 1e-13 * largest(expected));
}

TEST_CASE("encoder-decoder: a sample that counts nothing is not looked at in either stream") {
  two_models<double> t;
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::int32_t> labels = t.written;
  const row_range none = target.segment(3), read = source.segment(3);
  for (position i = none.first; i < none.last; ++i) labels[std::size_t(i)] = -100;

  // The decoder alone.
  engine<double, decoder_type, cross_entropy> writer({t.decoder_planner(2).search(true).value()},
                                                     decoder(), {});
  std::vector<double> context(std::size_t(source.tokens() * width));
  dice draw{3};
  for (double& x : context) x = double(draw(2001)) / 1000 - 1;
  std::vector<double> d_context;
  const auto own = std::size_t(t.encoder_list.table.parameters);
  batch<double> data = t.target_data();
  data.labels = labels;
  const auto run_decoder = [&] {
    d_context.assign(context.size(), 0);
    data.context = {context.data(), source.tokens(), width};
    data.d_context = {d_context.data(), source.tokens(), width};
    outcome<double> out;
    out.gradient.assign(std::size_t(t.decoder_list.table.gradients), 0);
    out.value =
        writer.add_gradient(std::span<const double>(t.parameters).subspan(own), data, out.gradient);
    return out;
  };
  const auto finite = run_decoder();
  const std::vector<double> d_finite = d_context;
  CHECK(largest(std::span<const double>(d_finite).first(std::size_t(read.first * width))) > 0);
  std::fill(context.begin() + read.first * width, context.begin() + read.last * width,
            not_a_number);
  // The last sample has nothing to say.
  std::fill(context.begin() + source.segment(4).first * width, context.end(), not_a_number);
  CHECK(run_decoder() == finite);
  CHECK(d_context == d_finite);
  for (position i = read.first * width; i < source.tokens() * width; ++i)
    CHECK(d_context[std::size_t(i)] == 0);
  context[0] = not_a_number;
  CHECK_THROWS_AS(run_decoder(), data_error);

  // An encoder of rows above which it stands.
  const auto of_rows = linear(3, width);
  using rows_planner =
      planner<cpu::device<double>, decltype(linear(3, width)), two_models<double>::bridge>;
  const auto p = t.joined(
      rows_planner(of_rows, source, {.features = 3, .input_gradient = true, .grains = grains})
          .plain(),
      t.decoder_planner().plain());
  encoder_decoder step(p, of_rows, decoder(), cross_entropy{});
  std::vector<double> parameters(std::size_t(step.encoder_parameters().parameters), 0.3);
  parameters.insert(parameters.end(), t.parameters.begin() + position(own), t.parameters.end());
  std::vector<double> rows(std::size_t(source.tokens() * 3)), d_rows(rows.size());
  for (double& x : rows) x = double(draw(2001)) / 1000 - 1;
  batch<double> from, to = t.target_data();
  to.labels = labels;
  const auto run_both = [&] {
    d_rows.assign(rows.size(), 0);
    from.rows = {rows.data(), source.tokens(), 3};
    from.d_rows = {d_rows.data(), source.tokens(), 3};
    outcome<double> out;
    out.gradient.assign(
        std::size_t(step.encoder_parameters().gradients + step.decoder_parameters().gradients), 0);
    out.value = step.add_gradient(parameters, from, to, out.gradient);
    return out;
  };
  const auto both = run_both();
  std::fill(rows.begin() + read.first * 3, rows.begin() + read.last * 3, not_a_number);
  CHECK(run_both() == both);
  CHECK(largest(d_rows) > 0);
  for (position i = read.first * 3; i < read.last * 3; ++i) CHECK(d_rows[std::size_t(i)] == 0);
  rows[0] = not_a_number;
  CHECK_THROWS_AS(run_both(), data_error);
}

TEST_CASE("encoder-decoder: plans share one budget; the least that does is named, and does") {
  const auto planned = [&](std::size_t budget) {
    return plan_encoder_decoder<double>(encoder(), decoder(), cross_entropy{}, source, target,
                                        width, {.budget = budget, .grains = grains});
  };
  std::size_t least = 0;
  for (const std::size_t budget : {std::size_t(1), std::size_t(1) << 20}) {
    try {
      planned(budget);
      FAIL("a budget that nothing fits");
    } catch (const budget_error& e) {
      CHECK(e.what() == sentence("plan_encoder_decoder: no exact plans fit ", budget,
                                 " bytes; the least is ", e.least));
      CHECK((least == 0 || least == e.least));
      least = e.least;
    }
  }
  CHECK_THROWS_AS(planned(least - 1), budget_error);
  const auto smallest = planned(least);
  CHECK(smallest.peak() == least);
  const auto free = planned(unlimited);
  CHECK(free.flops() <= smallest.flops());
  for (const std::size_t budget : {least + least / 100, (least + free.peak()) / 2, 2 * free.peak()})
    CHECK(planned(budget).peak() <= budget);
  const two_models<double> t;
  CHECK(run(t, smallest) == run(t, free));
}

TEST_CASE("encoder-decoder: what does not fit is named") {
  two_models<double> t;
  CHECK_THROWS_WITH_AS(
      plan_encoder_decoder(encoder(), decoder(), cross_entropy{}, source, target, 9),
      "plan_encoder_decoder: the encoder's rows have 8 features, not 9", shape_error);
  encoder_decoder step(t.plain(), encoder(), decoder(), cross_entropy{});
  std::vector<double> gradient(t.gradients() - 1);
  const auto words = [&](std::span<const double> parameters) -> std::string {
    try {
      step.add_gradient(parameters, t.source_data(), t.target_data(), gradient);
    } catch (const shape_error& e) {
      return e.what();
    }
    return "";
  };
  const auto own = t.encoder_list.table.parameters, others = t.decoder_list.table.parameters;
  CHECK(words(std::span(t.parameters).first(10)) ==
        sentence("encoder_decoder: 10 parameters, the models have ", own, " and ", others));
  CHECK(words(t.parameters) == sentence("encoder_decoder: a gradient of ", gradient.size(),
                                        " entries, the models have ", own, " and ", others));
}

TEST_CASE("encoder-decoder: the encoder's part of a window is that of the decoder's labels") {
  two_models<double> t;
  const auto p = t.plain();
  engine<double, decoder_type, cross_entropy> above(p.decoder, decoder(), cross_entropy{});
  batch<double> data = t.target_data();
  two_models<double>::bridge loss{&above, {}, {}};
  loss.data = &data;
  const auto part = [&] { return share_of_window(loss, t.from, batch<double>{}); };
  CHECK(part() == 1);
  data.normaliser = 3 * normaliser_of(cross_entropy{}, t.to, data);
  CHECK(part() == doctest::Approx(1 / 3.));
  std::fill(t.written.begin(), t.written.end(), -100);
  data.labels = t.written;
  CHECK(part() == 0);
  data.labels = {};  // refused in the decoder's own step
  CHECK(part() == 0);
}
