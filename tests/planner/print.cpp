#include <streambp/planner/print.hpp>

#include <doctest/doctest.h>

#include <sstream>

#include "small_models.hpp"

using namespace streambp;

namespace {

// y = 2 x, by a loop of its own.
struct doubled {
  static constexpr const char* name = "doubled";
  void forward(auto&, auto x, auto y) const {
    for (position r = 0; r < x.rows; ++r)
      for (position c = 0; c < x.cols; ++c) y(r, c) = 2 * x(r, c);
  }
  void backward(auto&, auto, auto, auto dy, auto dx) const {
    for (position r = 0; r < dy.rows; ++r)
      for (position c = 0; c < dy.cols; ++c) dx(r, c) += 2 * dy(r, c);
  }
};

template <class Plan>
std::string printed(const Plan& p) {
  std::ostringstream out;
  out << p;
  return out.str();
}

// Six stages over eleven sections, in 4 chunks; every number chosen so that its words are known.
step_plan made_by_hand() {
  step_plan p;
  p.shape.samples = packed({0, 30, 100});
  p.shape.threads = 2;
  p.choice.stages = {{.first = 0, .last = 1},
                     {.first = 1, .last = 3, .keeps_outputs = true},
                     {.first = 3, .last = 5, .keeps_outputs = true},
                     {.first = 5, .last = 7, .keeps_outputs = true},
                     {.first = 7, .last = 9, .keeps_memory = true, .keeps_chunk = true},
                     {.first = 9, .last = 11}};
  p.choice.fuses_head = true;
  p.chunks = {0, 32, 64, 96, 100};
  p.head_chunks = {0, 16, 32, 48, 64, 80, 96, 100};
  p.sweeps = {{sweep_kind::forward, 0}, {sweep_kind::descend, 5}, {sweep_kind::descend, 4},
              {sweep_kind::rebuild, 3}, {sweep_kind::descend, 3}, {sweep_kind::rebuild, 2},
              {sweep_kind::descend, 2}, {sweep_kind::rebuild, 1}, {sweep_kind::descend, 1}};
  p.forced = std::vector<bool>(11, false);
  p.forced[7] = true;
  p.names = {"embedding"};
  for (const char* block : {"blocks.0.", "blocks.1.", "blocks.2.", "blocks.3.", "last."})
    for (const char* layer : {"attention", "mlp"}) p.names.push_back(std::string(block) + layer);
  p.bytes = {
      .packing = 100, .checkpoints = 500, .stream = 0, .kept = 300, .sums = 0, .region = 100};
  p.flops = 2000000;
  p.least_flops = 1500000;
  p.budget = 1024;
  p.limit = {100, 132, {.packing = 100, .checkpoints = 800, .sums = 50, .region = 150}};
  return p;
}

}  // namespace

TEST_CASE("a plan's table, whole") {
  CHECK(printed(made_by_hand()) ==
        R"(plan      100 tokens in 2 samples, 2 threads
chunks    4 of at most 32 rows; the head inside them, 7 of at most 16
stages    6 over 11 sections          begins at     memories      outputs       last chunk
          embedding                   the input     no backward   no backward   no backward
          blocks.0.attention, 3 x 2   a chosen cut  recomputed    kept          recomputed
          blocks.3.attention, 1 x 2   a forced cut  kept          recomputed    kept
          last.attention, 1 x 2       a chosen cut  used at once  used at once  used at once
bytes     checkpoints            500 B    50.0 %  rows where stages begin
          kept                   300 B    30.0 %  memories, outputs and last chunks, until backward
          largest stage          100 B    10.0 %  memories, gradients and one chunk, or the head's
          packing                100 B    10.0 %  operands of products, by thread
          peak                  1000 B            of a budget of 1024 B
FLOPs     2 MFLOP a step, 25.0 % of them recomputation (plain backpropagation: 1.5 MFLOP)
longer    up to 100 tokens fit this budget; 132 do not: they need 1100 B,
          800 B of it (72.7 %) checkpoints
)");
}

TEST_CASE("what is not known or not asked is left out") {
  step_plan p = made_by_hand();
  p.least_flops = 0;
  p.budget = 0;
  p.limit = {};
  const std::string text = printed(p);
  CHECK(text.find("FLOPs     2 MFLOP a step\n") != std::string::npos);
  CHECK(text.find("no budget was set") != std::string::npos);
  CHECK(text.find("longer") == std::string::npos);
  p.limit = {.fits = 3200, .next = 0, .bytes = {}};
  CHECK(printed(p).find("longer    3200 tokens fit this budget too\n") != std::string::npos);
}

TEST_CASE("layers that count no FLOPs are named") {
  const auto own = residual(rms_norm(8) | doubled{});
  const auto text = [](const auto& model) {
    return printed(plan(model, cross_entropy{}, small::samples));
  };
  CHECK(text(embedding(19, 8) | own | small::mlp | linear(8, 19))
            .find("\n          not counted: doubled, whose own loops touch data\n") !=
        std::string::npos);
  CHECK(
      text(embedding(19, 8) | repeat(3, own | small::mlp) | linear(8, 19))
          .find("not counted: blocks.0.doubled and 2 more layers, whose own loops touch data\n") !=
      std::string::npos);
  CHECK(text(small::blocks(3)).find("not counted") == std::string::npos);
}

TEST_CASE("a plan from the planner prints its own numbers, its precision, and no long line") {
  const auto model = small::blocks(3);
  const auto p =
      plan<double>(model, cross_entropy{}, small::samples,
                   {.budget = 3_MiB, .threads = 2, .chunk = 16, .grains = small::grains});
  const std::string text = printed(p);
  CHECK(text.find("61 tokens in 4 samples, fp64, 2 threads") != std::string::npos);
  CHECK(text.find(bytes_in_words(p.peak())) != std::string::npos);
  CHECK(text.find(printing::flops_in_words(p.flops)) != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 100);
    CHECK(line.back() != ' ');
  }
  CHECK(printed(plan(model, cross_entropy{}, small::samples)).find(", fp32, 1 thread\n") !=
        std::string::npos);
}

TEST_CASE("plain backpropagation recomputes nothing; a plan in less memory says how much it does") {
  const auto model = small::blocks(3);
  small::planner_of<decltype(model)> planner(model, small::samples, {.grains = small::grains});
  const step_plan plain = planner.plain();
  const auto p = plan<double>(model, cross_entropy{}, small::samples,
                              {.keep = false, .fuse_head = false, .grains = small::grains});
  CHECK(p.least_flops == plain.flops);
  CHECK(p.flops > p.least_flops);
  CHECK(printed(p).find(printing::percent(double(p.flops - plain.flops), double(p.flops))) !=
        std::string::npos);
}

TEST_CASE("amounts in words") {
  using namespace printing;
  CHECK(flops_in_words(999) == "999 FLOP");
  CHECK(flops_in_words(1000) == "1 kFLOP");
  CHECK(flops_in_words(738123456789) == "738.1 GFLOP");
  CHECK(flops_in_words(big_count(738123456789) * 1000000000000) == "738.1 ZFLOP");
  CHECK(flops_in_words(big_count(738123456789) * 1000000000000 * 100000000000000) ==
        "7.381e+07 QFLOP");
  CHECK(percent(1., 3.) == "33.3 %");
  CHECK(percent(0., 0.) == "0.0 %");
  CHECK(counted(1, "chunk") == "1 chunk");
  CHECK(counted(0, "chunk") == "0 chunks");
  CHECK(table_row("a", {{"left", 6}, {"7", -3}, {"x", 4}}) == "a         left      7  x\n");
}
