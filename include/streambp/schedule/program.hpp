// The steps of one section, derived from types: a constexpr value that the engine iterates.
#pragma once

#include <array>
#include <tuple>

#include "../model/compose.hpp"
#include "../traits/layer_traits.hpp"

namespace streambp {

// A section is what stands between two places where a stage may be cut. One whose read sees all is
// run as two halves with a forced cut between them: everything up to remember, everything with
// read.
enum class half : unsigned char { whole, remember, read };

struct operator_facts {
  dependency split{};
  bool trains = true;  // has parameters that get a gradient
  bool takes_tokens = false;
  bool reads_input = true;  // in backward
  bool reads_output = true;
};

// op >= 0: value[out] = op(value[in]). op < 0: value[out] = value[skip] + value[in].
struct step {
  int op = -1;
  int in = 0;
  int out = 0;
  int skip = -1;
};

struct program {
  static constexpr int most = 48;
  std::array<step, most> steps{};
  std::array<operator_facts, most> operators{};
  int size = 0;
  int operator_count = 0;
  int values = 1;  // value 0 is the input
  int result = 0;  // the value that leaves the section
  half part = half::whole;

  constexpr dependency split() const {
    dependency d;
    for (int i = 0; i < operator_count; ++i) d = then(d, operators[i].split);
    return d;
  }
  constexpr bool trains() const {
    for (int i = 0; i < operator_count; ++i)
      if (operators[i].trains) return true;
    return false;
  }

  // Whether an ascending sweep leaves something in it that later chunks need. The memory of a read
  // that sees all is not its own: it belongs to the cut between the halves.
  constexpr bool holds_state() const {
    for (int i = 0; i < size; ++i)
      if (part != half::remember && (remembers(i) || reads_carry(i))) return true;
    return false;
  }

  // Whether backward looks at a value again: then it lives as long as the chunk.
  constexpr bool lasts(int value) const {
    for (int i = 0; i < size; ++i)
      if (steps[i].op >= 0 && runs_forward(i)) {
        const operator_facts& facts = operators[steps[i].op];
        if ((steps[i].in == value && facts.reads_input) ||
            (steps[i].out == value && facts.reads_output))
          return true;
      } else if (steps[i].op >= 0 && steps[i].in == value) {
        return true;  // release reads the rows that remember read
      }
    return false;
  }

  constexpr bool remembers(int i) const {
    return steps[i].op >= 0 && operators[steps[i].op].split.remembers &&
           !(part == half::read && operators[steps[i].op].split.forces_cut());
  }
  // The last step of a remember half stops before its read.
  constexpr bool runs_forward(int i) const { return part != half::remember || i != size - 1; }

  // The steps of a visit, and those of them whose output somebody reads: a step that hands on a
  // carry runs in any case.
  struct visited {
    std::array<bool, most> runs{}, output{};
  };
  // Of an ascending sweep when nobody wants the section's result: what feeds a memory or a carry,
  // and in the first forward a tally.
  constexpr visited feeds_state(bool first) const {
    return needed({}, [this, first](int i) { return remembers(i) || (first && tallies(i)); });
  }
  // When backward follows: what it reads again.
  constexpr visited feeds_backward(bool result_wanted) const {
    std::array<bool, most + 1> live{};
    for (int v = 0; v < values; ++v) live[v] = lasts(v) || (v == result && result_wanted);
    return needed(live, [this](int i) { return steps[i].op >= 0; });
  }

  constexpr bool tallies(int i) const {
    return steps[i].op >= 0 && operators[steps[i].op].split.tallies && runs_forward(i);
  }
  constexpr bool holds_tally() const {
    for (int i = 0; i < size; ++i)
      if (tallies(i)) return true;
    return false;
  }
  constexpr bool crosses() const {
    for (int i = 0; i < operator_count; ++i)
      if (operators[i].split.crosses) return true;
    return false;
  }
  constexpr bool reads_carry(int i) const {
    return steps[i].op >= 0 && operators[steps[i].op].split.carries;
  }

  // Gradient storage: `alias[v]` is the value whose gradient rows v shares; `copies[i]`: the sum
  // step i must copy its output's gradient for its branch, which would otherwise overwrite it;
  // `adds[i]`: it must add it to its skip's, which has the rows of an outer sum already.
  struct gradients {
    std::array<int, most> alias{};
    std::array<bool, most> copies{}, adds{};
  };
  constexpr gradients gradient_storage() const {
    gradients g;
    for (int v = 0; v < values; ++v) g.alias[v] = v;
    for (int i = size; i-- > 0;) {
      const step& s = steps[i];
      if (s.op >= 0) continue;
      g.adds[i] = g.alias[s.skip] != s.skip;
      if (!g.adds[i]) g.alias[s.skip] = g.alias[s.out];
      const step* producer = nullptr;
      for (int j = 0; j < size; ++j)
        if (steps[j].out == s.in) producer = &steps[j];
      g.copies[i] = producer == nullptr || producer->op < 0 || producer->in == s.skip;
      if (!g.copies[i]) g.alias[s.in] = g.alias[s.out];
    }
    return g;
  }

 private:
  // Walks back from the values that are wanted. A step may read its input though it does not run.
  template <class Reads>
  constexpr visited needed(std::array<bool, most + 1> live, Reads reads) const {
    visited v;
    for (int i = size; i-- > 0;) {
      v.output[i] = runs_forward(i) && live[steps[i].out];
      v.runs[i] = v.output[i] || (runs_forward(i) && reads_carry(i));
      if (v.runs[i] || reads(i)) live[steps[i].in] = true;
      if (v.runs[i] && steps[i].skip >= 0) live[steps[i].skip] = true;
    }
    return v;
  }
};

// Items in a row that form one section.
template <class... Item>
struct chain {
  std::tuple<Item...> items;
};

// expand<T>::into appends T's steps; leaves_of(t) lists its layers in the same order.
template <class L>
struct expand {
  static constexpr void into(program& p, bool trains) {
    using traits = layer_traits<L>;
    p.operators[p.operator_count] = {
        traits::split,
        trains &&
            traits::count::of(slot_kind::parameter) + traits::count::of(slot_kind::shared) > 0,
        traits::takes_tokens, traits::backward_reads_input, traits::backward_reads_output};
    p.steps[p.size++] = {p.operator_count++, p.result, p.values, -1};
    p.result = p.values++;
  }
};
template <class A, class B>
struct expand<sequential<A, B>> {
  static constexpr void into(program& p, bool trains) {
    expand<A>::into(p, trains);
    expand<B>::into(p, trains);
  }
};
template <class F>
struct expand<residual_of<F>> {
  static constexpr void into(program& p, bool trains) {
    const int skip = p.result;
    expand<F>::into(p, trains);
    p.steps[p.size++] = {-1, p.result, p.values, skip};
    p.result = p.values++;
  }
};
template <class F>
struct expand<frozen_of<F>> {
  static constexpr void into(program& p, bool) { expand<F>::into(p, false); }
};
template <class F>
struct expand<repeat_of<F>> {
  static_assert(sizeof(F) == 0,
                "repeat(n, f) stands at the top level of a model; inside a block "
                "write its layers one after another with |");
  static constexpr void into(program&, bool) {}
};
template <class... F>
struct expand<heads_of<F...>> {
  static_assert(sizeof...(F) == 0,
                "heads(...) ends a model: layers stand before it and none behind it, and it "
                "stands outside of any residual or repeat");
  static constexpr void into(program&, bool) {}
};
template <class... Item>
struct expand<chain<Item...>> {
  static constexpr void into(program& p, [[maybe_unused]] bool trains) {
    (expand<Item>::into(p, trains), ...);
  }
};

// A layer and whether its parameters are trained.
template <class L, bool Trains>
struct placed {
  using layer_type = L;
  static constexpr bool trains = Trains;
  L layer;
};

template <bool Trains = true, class L>
constexpr auto leaves_of(const L& layer) {
  return std::tuple<placed<L, Trains>>{{layer}};
}
template <bool Trains = true, class A, class B>
constexpr auto leaves_of(const sequential<A, B>& s) {
  return std::tuple_cat(leaves_of<Trains>(s.first), leaves_of<Trains>(s.second));
}
template <bool Trains = true, class F>
constexpr auto leaves_of(const residual_of<F>& r) {
  return leaves_of<Trains>(r.inner);
}
template <bool Trains = true, class F>
constexpr auto leaves_of(const frozen_of<F>& f) {
  return leaves_of<false>(f.inner);
}
template <bool Trains = true, class... Item>
constexpr auto leaves_of(const chain<Item...>& c) {
  return std::apply([](const auto&... item) { return std::tuple_cat(leaves_of<Trains>(item)...); },
                    c.items);
}

// The program of an item, and of its two halves.
template <class Item>
constexpr program program_of(half part = half::whole) {
  program p;
  expand<Item>::into(p, true);
  p.part = part;
  if (part == half::remember) {
    int last = 0;
    while (!(p.steps[last].op >= 0 && p.operators[p.steps[last].op].split.forces_cut())) ++last;
    p.size = last + 1;
    p.operator_count = p.steps[last].op + 1;
    p.result = 0;
  }
  return p;
}

// Why an item cannot be streamed; nullptr if it can.
template <class Item>
constexpr const char* objection() {
  const program p = program_of<Item>();
  bool before = false;  // a state or memory stands before
  for (int i = 0; i < p.operator_count; ++i) {
    if (p.operators[i].split.forces_cut() && before)
      return "a read that sees all, inside one residual, may follow layers that see only their "
             "row: "
             "put what carries or remembers into a residual of its own before it";
    before = before || p.operators[i].split.stateful();
  }
  return nullptr;
}

}  // namespace streambp
