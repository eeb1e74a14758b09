#include <streambp/autodiff/tape.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <streambp/autodiff/recorder.hpp>

namespace streambp::autodiff {
struct w_tag {
  static constexpr const char* name = "w";
};
struct v_tag {
  static constexpr const char* name = "v";
};
struct g_tag {
  static constexpr const char* name = "g";
};
struct h_tag {
  static constexpr const char* name = "h";
};
struct k_tag {
  static constexpr const char* name = "k";
};

namespace {

constexpr w_tag w{};
constexpr v_tag v{};
constexpr g_tag g{};
constexpr h_tag h{};
constexpr k_tag k{};
constexpr position in = 10, out = 30;

const auto slots = std::tuple{parameter(w, out, in, zeros), parameter(v, in, out, zeros),
                              parameter(g, 1, in, ones), carry(h, 1, in), memory(k, in)};
using at_type = recorder<std::decay_t<decltype(slots)>, phase::forward>;

graph recorded(const std::function<variable(const at_type&, variable)>& f) {
  graph all;
  const variable x(all, all.append({.op = operation::input, .cols = in}));
  const variable y = f(at_type(all, slots), x);
  const int a = y.in(all);
  all.append({.op = operation::output, .a = a, .cols = y.cols()});
  return all;
}
// Saved, kept, scratch.
std::array<position, 3> columns(const std::function<variable(const at_type&, variable)>& f) {
  const graph all = recorded(f);
  const tape_columns c = tape(all, true).width;
  return {c.saved, c.kept, c.scratch};
}

TEST_CASE("rows that exist are those that a backward written by hand has") {
  const auto has = [](position saved, position kept, position scratch,
                      const std::function<variable(const at_type&, variable)>& f) {
    const auto [s, k, c] = columns(f);
    CHECK(s == saved);
    CHECK(k == kept);
    CHECK(c == scratch);
  };
  // Straight from x to y.
  has(0, 0, 0, [](auto& at, auto x) { return matmul(x, at[w]); });
  has(0, 0, 0, [](auto&, auto x) { return tanh(exp(x) * x); });
  // The rows of a row parameter's gradient, before they are summed.
  has(0, 0, in, [](auto& at, auto x) { return x * at[g]; });
  // Two products saved; one rows for the gate's result, then for its gradient.
  has(2 * out, 0, out,
      [](auto& at, auto x) { return matmul(silu(matmul(x, at[w])) * matmul(x, at[w]), at[v]); });
  has(out, 0, out, [](auto& at, auto x) { return matmul(silu(matmul(x, at[w])), at[v]); });
  // A linear chain saves what weights need.
  has(out, 0, 0, [](auto& at, auto x) { return matmul(matmul(x, at[w]), at[v]); });
  // The sum of squares and the inverse deviation, a column each, and their gradients.
  has(2, 0, 1, [](auto&, auto x) { return rms_normalise(x); });
  // What nobody reads costs nothing.
  has(0, 0, 0, [](auto& at, auto x) {
    matmul(tanh(matmul(x, at[w])), at[v]);
    return -x;
  });
  // Attention's result and log-sum-exp may be kept; its gradient to q is assigned, then added to
  // dx.
  has(0, in + 2, 2 * in, [](auto& at, auto x) { return attend(x, at[k], at[k], {.heads = 2}); });
}

TEST_CASE("rows that live at the same time do not share columns") {
  const graph all = recorded([](auto& at, auto x) {
    const variable a = tanh(matmul(x, at[w])), b = matmul(a, at[v]), c = silu(b) * matmul(a, at[v]);
    return at.recur(h, [&](auto before) { return tanh(c * before) + softmax(b); }) +
           rms_normalise(c);
  });
  const tape t(all, true);
  // Columns of a node's rows and of its gradient, with the steps from their first to their last
  // use.
  struct use {
    position at, cols;
    int first, last;
    int node;
    bool gradient;
  };
  std::vector<use> uses;
  const auto touch = [&](int n, bool gradient, int step) {
    const position column = gradient ? t.adjoint_at[std::size_t(n)] : t.backward_at[std::size_t(n)];
    if (column < 0) return;
    for (use& u : uses)
      if (u.node == n && u.gradient == gradient) {
        u.last = step;
        return;
      }
    const bool saved = !gradient && t.a.saved[std::size_t(n)];
    uses.push_back({column, all[n].cols, saved ? -1 : step, step, n, gradient});
  };
  for (int i = 0; i < t.step_count; ++i) {
    const auto [what, n] = t.steps[std::size_t(i)];
    if (what == move::compute) {
      t.a.for_reads(n, [&](int b) { touch(b, false, i); });
      touch(n, false, i);
    } else if (what == move::weigh) {
      t.for_sharers(n, [&](int m) { touch(m, true, i), touch(t.a.base(all[m].a).node, false, i); });
    } else {
      t.for_members(n, [&](int m) {
        t.a.for_pull_reads(m, [&](int b) { touch(b, false, i); });
        t.a.for_pull_targets(m, [&](int b, bool) { touch(b, true, i); });
        touch(m, true, i);
      });
    }
  }
  CHECK(uses.size() > 15);
  int handed_over = 0;
  for (const use& a : uses)
    for (const use& b : uses) {
      if (&a == &b || a.at + a.cols <= b.at || b.at + b.cols <= a.at) continue;
      if (a.last < b.first || b.last < a.first) continue;
      // A gradient may begin in the step, and in the columns, where other rows are read last.
      CHECK((a.last == b.first || b.last == a.first));
      CHECK(a.at == b.at);
      CHECK(a.cols == b.cols);
      CHECK((a.last == b.first ? b : a).gradient);
      ++handed_over;
    }
  CHECK(handed_over > 0);
  for (const use& u : uses) {
    CHECK(u.at + u.cols <= t.width.saved + t.width.scratch);
    CHECK((u.at >= t.width.saved || u.at + u.cols <= t.width.saved));
  }
}

// The last node of a kind.
int last_of(const graph& all, operation op) {
  int n = all.size - 1;
  while (all[n].op != op) --n;
  return n;
}

TEST_CASE("a gradient takes no rows whose entries others of its columns still read") {
  // Each entry's gradient adds to column 0, whose value each entry reads.
  const graph all = recorded([](auto& at, auto x) {
    const variable a = matmul(x, at[w]);
    return matmul(a * slice(a, 0, 1), at[v]);
  });
  const tape t(all, true);
  int a = 0;
  while (all[a].op != operation::product) ++a;
  const auto i = std::size_t(a);
  REQUIRE(t.backward_at[i] >= 0);
  REQUIRE(t.adjoint_at[i] >= 0);
  CHECK(std::abs(t.adjoint_at[i] - t.backward_at[i]) >= out);
}

TEST_CASE("a weight of two products is weighed once, when both have their gradients") {
  const graph all = recorded([](auto& at, auto x) {
    return matmul(silu(matmul(x, at[w])) * matmul(tanh(x), at[w]), at[v]);
  });
  const tape t(all, true);
  int products = 0, weighed = 0;
  for (int i = 0; i < t.step_count; ++i) {
    const auto [what, n] = t.steps[std::size_t(i)];
    products += what == move::pull && all[n].op == operation::product && t.weighed_later(n);
    if (what != move::weigh) continue;
    ++weighed;
    CHECK(products == 2);
  }
  CHECK(weighed == 1);
  CHECK_FALSE(t.weighed_later(last_of(all, operation::product)));
}

TEST_CASE("a scan whose two operands are one rows assigns its gradients apart") {
  const auto spare = [](const std::function<variable(const at_type&, variable)>& f) {
    const graph all = recorded(f);
    return tape(all, true).spare_at[std::size_t(last_of(all, operation::scan))];
  };
  CHECK(spare([](auto& at, auto x) {
          const variable f = sigmoid(x);
          return scan(f, f, at.states(h));
        }) >= 0);
  CHECK(spare([](auto& at, auto x) { return scan(sigmoid(x), tanh(x), at.states(h)); }) < 0);
}

TEST_CASE("what is detached has no gradient, and nothing before it") {
  const graph all = recorded([](auto& at, auto x) {
    const variable y = matmul(x, at[w]);
    return y * detach(matmul(exp(x), at[w]));
  });
  const tape t(all, true);
  const int detached = last_of(all, operation::product);
  CHECK(t.adjoint_at[std::size_t(detached)] == -1);
  for (int i = 0; i < t.step_count; ++i)
    CHECK((t.steps[std::size_t(i)].what == move::compute ||
           t.steps[std::size_t(i)].node != detached));
}

TEST_CASE("rows that two memories hold are not written to one of them at once") {
  graph all;
  const variable x(all, all.append({.op = operation::input, .cols = in}));
  const at_type at(all, slots);
  const int p = matmul(x, at[w]).in(all);
  all.append({.op = operation::output, .a = p, .cols = out, .slot = 4});
  CHECK(analysis(all, false).direct[std::size_t(p)] == all.size - 1);
  all.append({.op = operation::output, .a = p, .cols = out, .slot = 5});
  CHECK(analysis(all, false).direct[std::size_t(p)] == -1);
}

TEST_CASE("what does not fit together is said with its sizes") {
  const auto throws = [](const char* sentence,
                         const std::function<variable(const at_type&, variable)>& f) {
    CHECK_THROWS_WITH_AS(recorded(f), sentence, shape_error);
  };
  throws("matmul: x has 30 features, w has 30 rows of 10",
         [](auto& at, auto x) { return matmul(matmul(x, at[w]), at[w]); });
  throws("matmul: the second operand is a parameter of the layer, at[tag]",
         [](auto&, auto x) { return matmul(x, x); });
  throws("autodiff: + of rows of 10 and of 30 columns",
         [](auto& at, auto x) { return x + matmul(x, at[w]); });
  throws("slice: columns [8, 12) of rows of 10", [](auto&, auto x) { return slice(x, 8, 4); });
  throws(
      "autodiff: a parameter of 30 rows and 10 columns among rows of the chunk; one of one row can "
      "stand there, any other in matmul(x, parameter)",
      [](auto& at, auto x) { return x * at[w]; });
  throws("attend: q, k and v of 10, 10 and 10 features with 3 heads and 3 key and value heads",
         [](auto& at, auto x) { return attend(x, at[k], at[k], {.heads = 3}); });
  throws("at.recur: the step gives 30 columns, h has 10",
         [](auto& at, auto x) { return at.recur(h, [&](auto) { return matmul(x, at[w]); }); });
  throws("at.recur: a recurrence within the step of another one; begin it outside of the step",
         [](auto& at, auto x) {
           return at.recur(h, [&](auto) { return at.recur(h, [&](auto b) { return b + x; }); });
         });
  throws("attend: a window of -1 and a softcap of 0; neither is negative",
         [](auto& at, auto x) { return attend(x, at[k], at[k], {.window = -1}); });
  throws("scan: f, c and the carry have 30, 10 and 10 columns; all three are alike",
         [](auto& at, auto x) { return scan(matmul(x, at[w]), x, at.states(h)); });
  const std::vector<double> frequencies{1, 0.1};
  throws(
      "rotate: x has 10 features, 2 heads of 2 pairs have 8; give a frequency for each pair of a "
      "head's features",
      [&](auto&, auto x) { return rotate(x, 2, frequencies); });
  throws("autodiff: an operation on numbers alone; use the ones of <cmath>",
         [](auto&, auto) { return variable(1) + variable(2); });
  throws(
      "autodiff: a forward of more than 96 operations; make it two layers, or write its backward "
      "by hand",
      [](auto&, auto x) {
        variable y = x;
        for (int i = 0; i < 96; ++i) y = tanh(y);
        return y;
      });
  CHECK_THROWS_WITH_AS(columns([](auto&, auto x) {
                         variable y = x;
                         for (int i = 0; i < 80; ++i) y = tanh(y);
                         return y;
                       }),
                       "autodiff: more than 64 entry-wise operations in a row; make it two layers, "
                       "or write the backward by hand",
                       shape_error);
}

}  // namespace
}  // namespace streambp::autodiff
