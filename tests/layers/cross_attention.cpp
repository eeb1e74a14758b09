#include <streambp/layers/cross_attention.hpp>

#include "core/lengths.hpp"
#include "planner/choices.hpp"
#include "reference.hpp"

namespace streambp {
namespace {

using laws::wave;

template <class Scalar>
std::vector<Scalar> waves(position n, int seed, double scale, double shift = 0) {
  std::vector<Scalar> v;
  for (position i = 0; i < n; ++i) v.push_back(Scalar(shift + scale * wave(i, seed)));
  return v;
}

template <class Scalar>
struct outcome {
  double value = 0;
  std::vector<Scalar> y, gradient, d_rows, d_context;

  bool operator==(const outcome& o) const {
    const auto same = [](const auto& a, const auto& b) {
      return laws::equal_bits(a.data(), b.data(), std::max(a.size(), b.size()));
    };
    return laws::equal_bits(&value, &o.value, 1) && same(y, o.y) && same(gradient, o.gradient) &&
           same(d_rows, o.d_rows) && same(d_context, o.d_context);
  }
};

// A model that reads a second stream, its data, and the loss Σ dy ∘ y.
template <class Scalar, class Model>
struct two_streams {
  using loss = laws::functional<Scalar>;
  using planner_type = planner<cpu::device<Scalar>, Model, loss>;

  Model model;
  packed samples, context;
  position features, context_features;
  instance_list<Model> list;
  std::vector<Scalar> parameters, rows, others, dy;

  two_streams(Model m, packed s, packed c, position features, position context_features)
      : model(std::move(m)),
        samples(std::move(s)),
        context(std::move(c)),
        features(features),
        context_features(context_features),
        list(model, features),
        rows(waves<Scalar>(samples.tokens() * features, 1, 1)),
        others(waves<Scalar>(context.tokens() * context_features, 2, 1)),
        dy(waves<Scalar>(samples.tokens() * list.heads.front().out, 3, 1)) {
    for (const auto& e : list.table.entries)
      for (const Scalar v : waves<Scalar>(e.size(), int(e.offset), 0.4, e.initial.mean))
        parameters.push_back(v);
  }

  planner_type planner_for(int threads) const {
    plan_options o{.threads = threads, .features = features, .input_gradient = true};
    o.context = context;
    o.context_features = context_features;
    o.grains = {8, 16};
    return {model, samples, o};
  }

  double value(const step_plan& p) const {
    std::vector<Scalar> seen(dy.size());
    auto e = engine_for(p, seen);
    batch<Scalar> data;
    data.rows = view<const Scalar>(rows.data(), samples.tokens(), features);
    data.context = view<const Scalar>(others.data(), context.tokens(), context_features);
    return e.value(parameters, data);
  }

  // In an arena of NaN; gradients of both inputs are added to `start`.
  outcome<Scalar> step(const step_plan& p, Scalar start = 0) const {
    outcome<Scalar> out;
    out.y.resize(dy.size());
    out.gradient.assign(std::size_t(list.table.gradients), start);
    out.d_rows.assign(rows.size(), start);
    out.d_context.assign(others.size(), start);
    auto e = engine_for(p, out.y);
    CHECK(e.high_water() == p.peak());
    for (const auto own : {e.block(), e.ledger_block()})
      std::memset(const_cast<std::byte*>(own.data()), 0xff, own.size());
    batch<Scalar> data;
    data.rows = view<const Scalar>(rows.data(), samples.tokens(), features);
    data.d_rows = view<Scalar>(out.d_rows.data(), samples.tokens(), features);
    data.context = view<const Scalar>(others.data(), context.tokens(), context_features);
    data.d_context = view<Scalar>(out.d_context.data(), context.tokens(), context_features);
    const auto before = laws::allocations.load();
    out.value = e.add_gradient(parameters, data, out.gradient);
    CHECK(laws::allocations == before);
    CHECK(e.flops() == p.flops);
    return out;
  }

  // One sample with its own part of the other stream.
  two_streams only(position s) const {
    const row_range own = samples.segment(s), read = context.segment(s);
    two_streams one = *this;
    one.samples = packed::one(own.rows());
    one.context = packed::one(read.rows());
    const auto cut = [](std::vector<Scalar>& v, row_range r, position width) {
      v = {v.begin() + r.first * width, v.begin() + r.last * width};
    };
    cut(one.rows, own, features);
    cut(one.dy, own, list.heads.front().out);
    cut(one.others, read, context_features);
    return one;
  }

 private:
  auto engine_for(const step_plan& p, std::vector<Scalar>& seen) const {
    const position n = samples.tokens(), out = list.heads.front().out;
    return engine<Scalar, Model, loss>(typed_plan<Scalar>{p}, model,
                                       loss{{dy.data(), n, out}, {seen.data(), n, out}});
  }
};

// The second sample has nothing to read, the fourth of the other stream nobody who reads it.
const packed samples = packed_lengths({1, 13, 24, 0, 30}),
             context = packed_lengths({7, 0, 33, 5, 9});

// Two readers of the stream, a state between them, a read that sees all at the end.
auto chain() {
  return residual(rms_norm(12) | cross_attention({.features = 12,
                                                  .context_features = 10,
                                                  .heads = 4,
                                                  .kv_heads = 2,
                                                  .value_width = 5})) |
         residual(gated_recurrence(12, 6)) |
         residual(cross_attention({.features = 12, .context_features = 10, .heads = 2}) | gelu()) |
         residual(bidirectional_attention({.features = 12, .heads = 2})) | linear(12, 7);
}

template <class Scalar>
auto chain_of() {
  return two_streams<Scalar, decltype(chain())>(chain(), samples, context, 12, 10);
}

template <class Scalar>
void every_plan_has_the_same_bits(position stride) {
  const auto t = chain_of<Scalar>();
  auto one = t.planner_for(1), two = t.planner_for(2);
  const auto plain = t.step(one.plain());
  for (const Scalar v : plain.d_context) REQUIRE(std::isfinite(v));
  CHECK(t.step(one.checkpointing()) == plain);
  CHECK(t.step(*two.search(true)) == plain);
  position number = 0, runs = 0;
  choice_space space{{1, 40, 1000}, {1, 1000}};
  space.intervals = [](position chunk) {
    return chunk < 1000 ? std::vector<position>{1, 2} : std::vector<position>{1};
  };
  for_each_choice(t.list, space, [&](const plan_choice& c) {
    if (number++ % stride != 0) return;
    const step_plan p = (runs++ % 2 == 0 ? one : two).complete(c);
    CAPTURE(laws::words(p));
    CHECK(t.step(p) == plain);
    CHECK(laws::equal_bits(&plain.value, std::array{t.value(p)}.data(), 1));
  });
  CHECK(runs > 100);
}

// The largest difference, relative to the largest entry.
template <class Scalar>
double error(const std::vector<Scalar>& got, const std::vector<double>& right) {
  return error_of({got.begin(), got.end()}, right);
}

// Softmax of one score is 1: no number of the score's gradient is left to round.
TEST_CASE("a row that reads one row of the other stream has no gradient of its score") {
  const auto check = [](auto scalar) {
    laws::setting s = laws::rows(37, 12);
    s.twice = false;  // a first of two would get no gradient at all
    laws::engine_subject<decltype(scalar), cross_attention, laws::functional<decltype(scalar)>>
        engine(cross_attention({.features = 12, .heads = 4, .kv_heads = 2}), {}, s);
    laws::subject& of = engine;
    laws::given data = laws::data_for(of, s, 0);
    data.beside = packed({0, 1, 2, 3, 4, 5, 6});
    data.context.resize(std::size_t(6 * s.features), 0.7);
    const laws::outcome o = of.run(of.streamed(s.samples, 0, data.beside))->step(data);
    for (const laws::tensor& t : o.tensors) {
      CAPTURE(t.name);
      const bool of_score =
          t.kind == laws::tensor_kind::input || t.name.ends_with("wq") || t.name.ends_with("wk");
      CHECK((t.largest() == 0) == of_score);
    }
  };
  check(0.0);
  check(0.0f);
}

TEST_CASE("cross attention keeps the laws") {
  CHECK(
      laws::hold(cross_attention({.features = 12, .heads = 4, .kv_heads = 2}), laws::rows(37, 12)));
  CHECK(laws::hold(
      residual(rms_norm(12) |
               cross_attention(
                   {.features = 12, .heads = 3, .kv_heads = 1, .head_width = 2, .value_width = 7})),
      laws::rows(53, 12)));
}

TEST_CASE("cross attention in a chain: every plan gives the same bits") {
  every_plan_has_the_same_bits<double>(197);
  every_plan_has_the_same_bits<float>(211);
}

TEST_CASE("cross attention: central differences of parameters and of both streams") {
  auto t = chain_of<double>();
  const step_plan p = *t.planner_for(2).search(true);
  REQUIRE(p.chunk_count() >= 3);
  REQUIRE(p.context_chunks.size() >= 4);
  const auto out = t.step(p);
  const auto compare = [&](const std::string& name, double* x, std::span<const double> gradient) {
    CAPTURE(name);
    double most = 0;
    for (const double g : gradient) most = std::max(most, std::abs(g));
    REQUIRE(most > 0);
    for (std::size_t i = 0; i < gradient.size(); i += 1 + gradient.size() / 24) {
      const double at = x[i];
      const double slope = laws::slope_at_0([&](double h) {
        x[i] = at + h;
        const double value = t.value(p);
        x[i] = at;
        return value;
      });
      CAPTURE(i);
      CHECK(std::abs(slope - gradient[i]) < 1e-7 * most);
    }
  };
  for (const auto& e : t.list.table.entries)
    compare(e.name, t.parameters.data() + e.offset,
            std::span(out.gradient).subspan(std::size_t(e.gradient), std::size_t(e.size())));
  compare("x", t.rows.data(), out.d_rows);
  compare("c", t.others.data(), out.d_context);
}

TEST_CASE_TEMPLATE("cross attention: a sample's rows do not depend on what it is packed with", S,
                   float, double) {
  const auto t = chain_of<S>();
  const auto whole = t.step(*t.planner_for(2).search());
  const double room = 512 * double(std::numeric_limits<S>::epsilon());
  std::vector<double> gradient(whole.gradient.size(), 0);
  for (position s = 0; s < samples.segments(); ++s) {
    if (samples.segment(s).rows() == 0 || context.segment(s).rows() == 0) continue;  // no plan
    const auto alone = t.only(s);
    const auto out = alone.step(alone.planner_for(1).plain());
    const row_range own = samples.segment(s), read = context.segment(s);
    CHECK(laws::equal_bits(out.y.data(), whole.y.data() + own.first * 7, out.y.size()));
    CHECK(laws::equal_bits(out.d_rows.data(), whole.d_rows.data() + own.first * 12,
                           out.d_rows.size()));
    CHECK(laws::equal_bits(out.d_context.data(), whole.d_context.data() + read.first * 10,
                           out.d_context.size()));
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += double(out.gradient[i]);
  }
  // Without the sample that reads nothing.
  auto rest = t;
  std::fill_n(rest.dy.begin() + samples.segment(1).first * 7, samples.segment(1).rows() * 7, S(0));
  CHECK(error(rest.step(*t.planner_for(1).search()).gradient, gradient) < room);
}

TEST_CASE("cross attention: a sample reads its own part of the stream, or nothing") {
  const auto layer = cross_attention({.features = 12, .context_features = 10, .heads = 2});
  two_streams<double, cross_attention> t(layer, samples, context, 12, 10);
  const step_plan p = *t.planner_for(1).search(true);
  const auto before = t.step(p);
  const row_range nothing = samples.segment(1);
  for (position i = nothing.first * 12; i < nothing.last * 12; ++i) {
    CHECK(before.y[std::size_t(i)] == 0);
    CHECK(before.d_rows[std::size_t(i)] == 0);
  }
  for (position i = context.segment(3).first * 10; i < context.segment(3).last * 10; ++i)
    CHECK(before.d_context[std::size_t(i)] == 0);
  for (position s = 0; s < context.segments(); ++s) {
    auto moved = t;
    for (position i = context.segment(s).first * 10; i < context.segment(s).last * 10; ++i)
      moved.others[std::size_t(i)] = 0.5 - moved.others[std::size_t(i)];
    const auto after = moved.step(p);
    for (position i = 0; i < samples.tokens(); ++i)
      CHECK(laws::equal_bits(&before.y[std::size_t(i * 12)], &after.y[std::size_t(i * 12)], 12) ==
            (samples.segment_at(i) != s || context.segment(s).rows() == 0));
  }
}

TEST_CASE("cross attention: gradients are added, and frozen it passes the same on") {
  const auto layer = cross_attention({.features = 12, .context_features = 10, .heads = 2});
  two_streams<double, cross_attention> t(layer, samples, context, 12, 10);
  const step_plan p = *t.planner_for(1).search(true);
  const auto from_zero = t.step(p), from_three = t.step(p, 3);
  const auto shifted = [](std::vector<double> v) {
    for (double& x : v) x += 3;
    return v;
  };
  CHECK(error_of(from_three.gradient, shifted(from_zero.gradient)) < 1e-14);
  CHECK(error_of(from_three.d_rows, shifted(from_zero.d_rows)) < 1e-14);
  CHECK(error_of(from_three.d_context, shifted(from_zero.d_context)) < 1e-14);

  two_streams<double, decltype(frozen(layer))> still(frozen(layer), samples, context, 12, 10);
  still.parameters = t.parameters;
  const step_plan less = *still.planner_for(1).search(true);
  const auto out = still.step(less);
  CHECK(out.gradient.empty());
  CHECK(out.d_rows == from_zero.d_rows);
  CHECK(out.d_context == from_zero.d_context);
  CHECK(less.flops < p.flops);
}

TEST_CASE("cross attention is PyTorch's") {
  const nlohmann::json file = read_reference("cross_attention");
  const auto& c = file["configuration"];
  two_streams<double, cross_attention> t(cross_attention({.features = c["features"],
                                                          .context_features = c["context_features"],
                                                          .heads = c["heads"],
                                                          .kv_heads = c["kv_heads"],
                                                          .head_width = c["head_width"],
                                                          .value_width = c["value_width"]}),
                                         packed(c["offsets"].get<std::vector<position>>()),
                                         packed(c["context_offsets"].get<std::vector<position>>()),
                                         c["features"], c["context_features"]);
  for (auto* v : {&t.parameters, &t.rows, &t.dy, &t.others}) v->clear();
  for (const auto& p : file["parameters"]) append_values(p, t.parameters);
  append_values(file["inputs"][0], t.rows);
  append_values(file["inputs"][1], t.dy);
  append_values(file["inputs"][2], t.others);
  auto plans = t.planner_for(1);
  for (const step_plan& p : {plans.plain(), *plans.search(true)}) {
    const auto out = t.step(p);
    const auto right = [&](const char* kind, const std::string& name) {
      return file[kind].at(name).get<std::vector<double>>();
    };
    CHECK(error_of(out.y, right("outputs", "y")) < 1e-9);
    CHECK(error_of(out.d_rows, right("gradients", "x")) < 1e-9);
    CHECK(error_of(out.d_context, right("gradients", "c")) < 1e-9);
    for (const auto& e : t.list.table.entries) {
      const auto own = out.gradient.begin() + e.gradient;
      CHECK(error_of({own, own + e.size()},
                     right("gradients", e.name.substr(e.name.find('.') + 1))) < 1e-9);
    }
  }
}

TEST_CASE("cross attention names what does not fit") {
  CHECK(words_of([] { cross_attention({.features = 12, .heads = 4, .kv_heads = 3}); }) ==
        "cross_attention: 4 heads do not share 3 key and value heads evenly");
  CHECK(words_of([] { cross_attention({.features = 13, .heads = 4}); }) ==
        "cross_attention: 13 features do not divide into 4 heads; give head_width");
  CHECK(words_of([] { cross_attention({}); }) ==
        "cross_attention: features is 0, it must be positive");
  const auto layer = cross_attention({.features = 12, .heads = 2});
  const auto planned = [&](const packed& other, position width, position features = 12) {
    return words_of([&] {
      plan_options o{.features = features};
      o.context = other;
      o.context_features = width;
      planner<cpu::device<double>, cross_attention, laws::functional<double>>(layer, samples, o)
          .plain();
    });
  };
  CHECK(planned({}, 12) ==
        "plan: the model reads another stream; give its offsets in options.context");
  CHECK(planned(packed::one(9), 12) ==
        "plan: 5 samples read the other stream's 1; each has its own");
  CHECK(planned(context, 12, 9) == "cross_attention: x has 9 features, the layer takes 12");
  CHECK(planned(context, 10) ==
        "cross_attention: the other stream has 10 features, the layer takes 12");
}

}  // namespace
}  // namespace streambp
