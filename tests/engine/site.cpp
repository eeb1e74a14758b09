// What a layer sees of its slots at each chunk.
#include <streambp/engine/site.hpp>

#include <doctest/doctest.h>

#include <streambp/streambp.hpp>
#include <vector>

#include "trial.hpp"

using namespace streambp;

namespace {

// Looks at every kind of slot, in forward and in backward, and notes what is not as documented.
struct watching {
  struct w_tag {
    static constexpr const char* name = "w";
  };
  struct off_tag {
    static constexpr const char* name = "off";
  };
  struct m_tag {
    static constexpr const char* name = "m";
  };
  struct q_tag {
    static constexpr const char* name = "q";
  };
  struct o_tag {
    static constexpr const char* name = "o";
  };
  struct s_tag {
    static constexpr const char* name = "s";
  };
  struct t_tag {
    static constexpr const char* name = "t";
  };
  static constexpr const char* name = "watching";
  static constexpr bool backward_reads_output = false;
  static constexpr reach sees = past;
  static inline std::vector<row_range> chunks;
  static inline bool frozen = false;

  auto slots() const {
    return std::tuple{parameter(w_tag{}, 2, 3, ones),
                      parameter(off_tag{}, 0, 3, zeros),
                      memory(m_tag{}, 4),
                      saved(q_tag{}, 5),
                      keepable(o_tag{}, 6),
                      scratch(s_tag{}, 7),
                      workspace(t_tag{}, 8)};
  }
  static bool shaped(const auto& v, position rows, position cols) {
    return v.rows == rows && v.cols == cols && v.data != nullptr;
  }
  void look(auto& at) const {
    const row_range own = at.chunk.rows;
    const position n = at.rows(), tokens = at.chunk.samples->tokens(), before = at.chunk.prefix;
    CHECK(n == own.rows());
    CHECK(shaped(at[w_tag{}], 2, 3));
    CHECK(at[off_tag{}].rows == 0);
    CHECK_FALSE(at.trains(off_tag{}));
    CHECK(shaped(at[m_tag{}], before + tokens, 4));
    CHECK(at.own(at[m_tag{}]).data == at[m_tag{}].row(before + own.first));
    CHECK(at.own(at[m_tag{}]).rows == n);
    CHECK(at.own(m_tag{}).data == at.own(at[m_tag{}]).data);
    CHECK(at.own(m_tag{}).rows == n);
    CHECK(shaped(at[q_tag{}], n, 5));
    CHECK(shaped(at[o_tag{}], n, 6));
    CHECK(shaped(at[s_tag{}], n, 7));
    CHECK(shaped(at[t_tag{}], at.on.threads(), 8));
    CHECK(at.grains().front() == own.first);
    CHECK(at.grains().back() == own.last);
    position rows = 0;
    for (const piece p : at.pieces()) rows += p.rows;
    CHECK(rows == n);
  }
  void remember(auto& at, auto) const { zero(at.on, at.own(at[m_tag{}])); }
  void forward(auto& at, auto x, auto y) const {
    look(at);
    chunks.push_back(at.chunk.rows);
    // What forward leaves in saved and keepable slots is there in backward.
    for (position i = 0; i < at.rows(); ++i) {
      at[q_tag{}](i, 4) = double(at.chunk.rows.first + i);
      if (!at.restored) at[o_tag{}](i, 5) = -double(at.chunk.rows.first + i);
    }
    copy(at.on, x, y);
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    look(at);
    CHECK(at.trains(w_tag{}) == !frozen);
    CHECK(shaped(at.d(m_tag{}), at[m_tag{}].rows, 4));
    CHECK(at.d_own(m_tag{}).data == at.own(at.d(m_tag{})).data);
    CHECK(at.d_own(m_tag{}).rows == at.rows());
    for (position i = 0; i < at.rows(); ++i) {
      CHECK(at[q_tag{}](i, 4) == double(at.chunk.rows.first + i));
      CHECK(at[o_tag{}](i, 5) == -double(at.chunk.rows.first + i));
    }
    add(at.on, dy, dx);
  }
  void release(auto&, auto, auto) const {}
};

void watch(auto model) {
  const auto t =
      trial_of<double>(model, cross_entropy{}, packed_lengths({5, 0, 40}),
                       {.features = 3, .prefix = 2, .input_gradient = true, .grains = {8, 16}});
  for (const bool outputs : {false, true})
    for (const position chunk : {1, 100}) {
      const step_plan p = t.planner_for(2).complete(
          {{{0, 1, true, outputs, false}, {1, 2, false, outputs, false}}, chunk, 8, false});
      auto e = t.engine_for(p);
      outcome<double> out;
      out.gradient.assign(std::size_t(t.list.table.gradients), 0);
      const batch<double> b = t.data(out);
      watching::chunks.clear();
      poison(e);
      e.add_gradient(t.parameters, b, out.gradient);
      // Every row, in the forward and again in the replay of each of two layers.
      position rows = 0;
      for (const row_range r : watching::chunks) rows += r.rows();
      CHECK(rows == 4 * 45);
    }
}

}  // namespace

TEST_CASE(
    "a site shows slots of the chunk, of all tokens, of all threads; frozen ones do not train") {
  watching::frozen = false;
  watch(residual(watching{}) | watching{} | linear(3, 5));
  watching::frozen = true;
  watch(frozen(residual(watching{}) | watching{}) | linear(3, 5));
}

namespace {

struct handing {
  struct h_tag {
    static constexpr const char* name = "h";
  };
  static constexpr bool backward_reads_output = false;
  auto slots() const { return std::tuple{carry(h_tag{}, 2, 3)}; }
  void forward(auto&, auto, auto) const {}
  void backward(auto&, auto, auto, auto, auto) const {}
};

}  // namespace

TEST_CASE("a carry comes from the chunk before and goes to the one behind, gradients alternate") {
  cpu::device<double> on(1);
  std::vector<double> values(5 * 6), gradients(2 * 6);
  slot_cell<double> cell;
  cell.value = {values.data(), 5, 6};
  cell.gradient = {gradients.data(), 2, 6};
  for (const position chunk : {0, 1, 2, 3}) {
    chunk_place at;
    at.index = chunk;
    at.snapshot = {4, 1};
    const site<cpu::device<double>, handing> s{.on = on, .chunk = at, .cells = &cell};
    const auto states = s.states(handing::h_tag{});
    CHECK(states.in.data == cell.value.row(chunk));
    CHECK(states.out.data == cell.value.row(chunk + 1));
    CHECK(states.d_in.data == cell.gradient.row(chunk % 2));
    CHECK(states.d_out.data == cell.gradient.row(1 - chunk % 2));
  }
}
