// Rates of the CPU's primitives at a model's shapes, beside the FMA peak of the same run. The
// options are Google Benchmark's, such as --benchmark_filter=attention --benchmark_format=json.

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <numeric>
#include <streambp/streambp.hpp>
#include <string>
#include <vector>

#include "fma_peak.hpp"

using namespace streambp;

namespace {

using scalar = float;
using device = cpu::device<scalar>;

// Numbers in [-1, 1), placed as in the arena.
class matrix {
 public:
  matrix(position rows, position cols)
      : block_(std::size_t(rows * cols) * sizeof(scalar)),
        all_(reinterpret_cast<scalar*>(block_.data()), rows, cols) {
    for (position i = 0; i < rows * cols; ++i)
      all_.data[i] = scalar(2 * uniform(random_bits({}, 0, i)) - 1);
  }
  operator view<scalar>() const { return all_; }
  operator view<const scalar>() const { return all_; }
  void assign(const matrix& other) {
    std::copy_n(other.all_.data, all_.rows * all_.cols, all_.data);
  }

 private:
  cpu::mapped_block block_;
  view<scalar> all_;
};

// A device with its packing buffers.
struct machine {
  cpu::mapped_block packing;
  device on;
  explicit machine(int threads) : packing(device::packing_bytes(threads)), on(threads) {
    on.lend(packing.data());
  }
};

// What every case is measured with.
struct setting {
  int threads;
  double peak;  // FLOPs a second of one core
};

struct work {
  std::function<void(device&)> run;
  std::function<void()> restore = {};  // what run uses up; not timed
};

// `entries`: what to give the rate of, where FLOPs say nothing. `prepare` makes the data once the
// case is chosen to run. One thread is timed by its CPU seconds, whoever else wants the core.
void add_case(const std::string& name, setting on_what, position entries,
              const std::function<work()>& prepare) {
  const auto measure = [=](benchmark::State& state) {
    const work work = prepare();
    machine m(on_what.threads);
    work.run(m.on);
    const big_count flops = m.on.flops();
    for (auto _ : state) {
      if (work.restore) {
        state.PauseTiming();
        work.restore();
        state.ResumeTiming();
      }
      work.run(m.on);
    }
    const auto rate = [&](const char* unit, double each) {
      if (each > 0)
        state.counters[unit] =
            benchmark::Counter(each, benchmark::Counter::kIsIterationInvariantRate);
    };
    rate("GFLOP/s", 1e-9 * double(flops));
    rate("of_peak", double(flops) / (on_what.peak * on_what.threads));
    rate("Gentries/s", 1e-9 * double(entries));
  };
  const std::string full = name + "/threads:" + std::to_string(on_what.threads);
  auto* const added = benchmark::RegisterBenchmark(full.c_str(), measure);
  added->Unit(benchmark::kMillisecond);
  if (on_what.threads > 1) added->UseRealTime();
}

// The three products of a linear layer.
std::vector<position> listed(const edges& e) { return {e.begin(), e.end()}; }

void add_products(position rows, position out, position in, setting on_what) {
  struct data {
    matrix x, dy, w;
    std::vector<position> grains;
  };
  const auto make = [=] {
    const position grain = head_grain_of(geometry{}, out);
    return std::make_shared<data>(
        data{matrix(rows, in), matrix(rows, out), matrix(out, in),
             listed(grain_edges(packed::one(rows), geometry{}.tile, grain))});
  };
  const auto add = [&](const char* name, auto product) {
    add_case(sentence(name, "/rows:", rows, "/out:", out, "/in:", in), on_what, 0,
             [=] { return work{[=, d = make()](device& on) { product(on, *d); }}; });
  };
  add("project", [](device& on, const data& d) { project(on, d.x, d.w, d.dy); });
  add("project_back", [](device& on, const data& d) { project_back(on, d.dy, d.w, d.x); });
  add("add_weight_gradient",
      [](device& on, const data& d) { add_weight_gradient(on, d.dy, d.x, d.w, d.grains); });
}

// The last `rows` rows of a sample of `tokens`.
void add_attention(position tokens, position rows, setting on_what) {
  const attention_shape shape{
      .heads = 8, .kv_heads = 2, .key_width = 64, .value_width = 64, .scale = 0.125};
  struct data {
    packed samples;
    matrix q, k, v, o, d_o, dq, dk, dv, lse, workspace;
  };
  const auto make = [=] {
    const position wide = 8 * 64, narrow = 2 * 64;
    return std::make_shared<data>(
        data{packed::one(tokens), matrix(rows, wide), matrix(tokens, narrow),
             matrix(tokens, narrow), matrix(rows, wide), matrix(rows, wide), matrix(rows, wide),
             matrix(tokens, narrow), matrix(tokens, narrow), matrix(rows, 8),
             matrix(on_what.threads, attention_workspace(shape))});
  };
  const row_range last{tokens - rows, tokens};
  const auto forward = [=](device& on, const data& d) {
    attention_forward(on, shape, piece_list(d.samples, last), d.q, d.k, d.v, nullptr, d.o, d.lse,
                      d.workspace);
  };
  const auto backward = [=](device& on, const data& d) {
    attention_backward(on, shape, piece_list(d.samples, last), d.q, d.k, d.v, nullptr, d.o, d.lse,
                       d.d_o, d.dq, d.dk, d.dv, nullptr, d.workspace);
  };
  const std::string where = sentence("/tokens:", tokens, "/rows:", rows);
  add_case("attention_forward" + where, on_what, 0,
           [=] { return work{[=, d = make()](device& on) { forward(on, *d); }}; });
  add_case("attention_backward" + where, on_what, 0, [=] {
    const auto d = make();
    machine before(on_what.threads);
    forward(before.on, *d);
    return work{[=](device& on) { backward(on, *d); }};
  });
}

void add_head_rows(position rows, position vocabulary, setting on_what) {
  struct data {
    matrix logits, raw;
    std::vector<std::int32_t> first, targets;  // a target a row
    std::vector<row_statistics> statistics;
    std::vector<row_gradient> slopes;
  };
  const auto make = [=] {
    const auto n = std::size_t(rows);
    std::vector<std::int32_t> first(n + 1);
    std::iota(first.begin(), first.end(), 0);
    return std::make_shared<data>(data{
        matrix(rows, vocabulary), matrix(rows, vocabulary), first, std::vector<std::int32_t>(n, 1),
        std::vector<row_statistics>(n, {11, 0, 0}), std::vector<row_gradient>(n, {1, -1, 0})});
  };
  const std::string where = sentence("/rows:", rows, "/vocabulary:", vocabulary);
  const position entries = rows * vocabulary;
  add_case("row_statistics_of" + where, on_what, entries, [=] {
    return work{[d = make()](device& on) {
      row_statistics_of(on, {}, d->logits, d->first, d->targets, false, d->statistics);
    }};
  });
  add_case("gradient_of_rows" + where, on_what, entries, [=] {
    const auto d = make();
    return work{[d](device& on) {
                  gradient_of_rows(on, {}, d->logits, d->first, d->targets, d->statistics,
                                   d->slopes);
                },
                [d] { d->logits.assign(d->raw); }};
  });
}

void add_row_maps(position rows, position width, position inner, setting on_what) {
  struct data {
    matrix x, dy, dx, gain, dgain, inverse, gate, up, h;
    std::vector<position> grains;
  };
  const auto make = [=] {
    return std::make_shared<data>(
        data{matrix(rows, width), matrix(rows, width), matrix(rows, width), matrix(1, width),
             matrix(1, width), matrix(rows, 1), matrix(rows, inner), matrix(rows, inner),
             matrix(rows, inner),
             listed(grain_edges(packed::one(rows), geometry{}.tile, geometry{}.grain))});
  };
  const auto add = [&](const char* name, position cols, auto map) {
    add_case(sentence(name, "/rows:", rows, "/width:", cols), on_what, rows * cols, [=] {
      const auto d = make();
      return work{[=](device& on) { map(on, *d); },
                  [d] { d->gate.assign(d->h), d->up.assign(d->h), d->dx.assign(d->x); }};
    });
  };
  add("rms_norm_forward", width,
      [](device& on, const data& d) { rms_norm_forward(on, d.x, d.gain, 1e-6, d.dy, d.inverse); });
  add("rms_norm_backward", width, [](device& on, const data& d) {
    rms_norm_backward(on, d.x, d.gain, d.inverse, d.dy, d.dx, d.dgain, d.grains);
  });
  add("gated_forward", inner,
      [](device& on, const data& d) { gated_forward(on, activation::silu, d.gate, d.up, d.gate); });
  add("gated_backward", inner,
      [](device& on, const data& d) { gated_backward(on, activation::silu, d.gate, d.up, d.h); });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::peak_rate<scalar> peak = bench::fma_peak<scalar>();
  benchmark::AddCustomContext("instruction_set", cpu::isa);
  benchmark::AddCustomContext("fma_peak_of_one_core", sentence(peak.flops * 1e-9, " GFLOP/s"));
  for (const int threads : {1, 2}) {
    const setting on_what{threads, peak.flops};
    for (const position rows : {256, 1024}) {
      add_products(rows, 512, 512, on_what);
      add_products(rows, 1536, 512, on_what);
      add_products(rows, 512, 1536, on_what);
      add_row_maps(rows, 512, 1536, on_what);
    }
    for (const position rows : {128, 512}) add_products(rows, 32000, 512, on_what);
    for (const position tokens : {2048, 8192}) add_attention(tokens, 1024, on_what);
    add_head_rows(128, 32000, on_what);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
