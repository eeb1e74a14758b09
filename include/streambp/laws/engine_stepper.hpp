// One step of the ordinary engine between margins of poison, with the laws of every single step:
// bytes, allocations, FLOPs, inputs left as they were.
#pragma once

#include "../engine/step_runner.hpp"
#include "allocations.hpp"
#include "guarded_array.hpp"
#include "stack.hpp"
#include "subject.hpp"

namespace streambp::laws {

// Σ c ∘ y, a loss whose gradient in y is c; it writes down what y was.
template <class Scalar>
struct functional {
  static constexpr bool host_only = false;
  view<const Scalar> c;  // (tokens, results)
  view<Scalar> seen;     // (tokens, results)

  double rows(auto& on, position first, view<Scalar> y) const {
    const auto own = [&](auto rows) { return rows.middle_rows(first, y.rows); };
    const double value = sum_of_products(on, own(c), y);
    copy(on, y, own(seen));
    copy(on, own(c), y);
    return value;
  }
};

template <class Loss>
inline constexpr bool is_functional = false;
template <class Scalar>
inline constexpr bool is_functional<functional<Scalar>> = true;

template <class Device>
class engine_stepper : public stepper {
 public:
  using Scalar = typename Device::scalar;

  // on_layer: the one loss, when it is the functional of a layer on trial.
  engine_stepper(const step_plan& plan, std::shared_ptr<const section_runner<Device>> sections,
                 std::vector<std::unique_ptr<loss_runner<Device>>> losses,
                 functional<Scalar>* on_layer, const subject& of)
      : of_(of), on_layer_(on_layer), engine_(plan, std::move(sections), std::move(losses)) {
    engine_.refuse_what_is_not_finite(false);  // laws look for themselves
  }

  double value(const given& data) override {
    buffers b(*this, data);
    b.each([&](auto& a) { a.push(on_); });
    poison_arena();
    return engine_.value(b.parameters.span(), b.batch);
  }

  outcome step(const given& data, const outcome* start) override {
    buffers b(*this, data, start);
    b.each([&](auto& a) { a.push(on_); });
    poison_arena();
    engine_.reset_flops();
    outcome result;
    const std::int64_t before = allocations;
    const std::size_t stack = stack_of([&] {
      result.value = engine_.add_gradient(b.parameters.span(), b.batch, b.gradient.span());
    });
    const std::int64_t asked = allocations - before;
    b.each([&](auto& a) { a.pull(on_); });
    check(asked, stack, data, b);
    collect(result, data, b);
    return result;
  }

 private:
  // The caller's side of a step, each array between margins of poison.
  struct buffers {
    using array = guarded_array<Device>;
    array parameters, rows, context, c, initial;
    array gradient, d_rows, d_context, d_initial, seen;
    guarded_buffer<Scalar> weights;  // the host's, as labels are
    streambp::batch<Scalar> batch;

    buffers(engine_stepper& by, const given& d, const outcome* start = nullptr)
        : parameters(d.parameters),
          rows(d.rows),
          context(d.context),
          c(d.c),
          initial(d.initial),
          gradient(std::size_t(by.engine_.parameters().gradients)),
          d_rows(d.rows.size()),
          d_context(d.context.size()),
          d_initial(d.initial.size()),
          seen(d.c.size()),
          weights(d.weights) {
      const position tokens = d.samples.tokens();
      for (auto* g : {&gradient, &d_rows, &d_context, &d_initial})
        std::fill(g->host().begin(), g->host().end(), Scalar(0));
      if (start) put(*start, by.engine_.parameters());
      batch.tokens = d.tokens;
      if (by.of_.features > 0) {
        batch.rows = {rows.span().data(), tokens, by.of_.features};
        batch.d_rows = {d_rows.span().data(), tokens, by.of_.features};
      }
      if (!d.context.empty()) {
        batch.context = {context.span().data(), d.beside.tokens(), by.of_.features};
        batch.d_context = {d_context.span().data(), d.beside.tokens(), by.of_.features};
      }
      batch.labels = d.labels;
      batch.weights = weights.span();
      batch.normaliser = d.normaliser;
      batch.sample_ids = d.ids;
      batch.seed = d.seed;
      batch.step = d.step;
      batch.initial = initial.span();
      batch.d_initial = d_initial.span();
      if (by.on_layer_)
        *by.on_layer_ = {{c.span().data(), tokens, by.of_.results},
                         {seen.span().data(), tokens, by.of_.results}};
    }

    void put(const outcome& start, const parameter_table& table) {
      for (const tensor& t : start.tensors) {
        std::span<Scalar> to;
        if (t.kind == tensor_kind::parameter)
          to = gradient.host().subspan(entry(table, t).gradient);
        if (t.kind == tensor_kind::input) to = d_rows.host();
        if (t.kind == tensor_kind::context) to = d_context.host();
        if (t.kind == tensor_kind::initial) to = d_initial.host();
        for (std::size_t i = 0; i < t.data.size() && !to.empty(); ++i) to[i] = Scalar(t.data[i]);
      }
    }
    static const parameter_info& entry(const parameter_table& table, const tensor& t) {
      return table[t.name.substr(std::strlen(gradient_of))];
    }
    bool intact(const given& d) {
      bool untouched = weights.holds(d.weights);
      const auto holds = [&](array& a, const auto& given) {
        untouched = untouched && a.pulled().holds(given);
      };
      holds(parameters, d.parameters), holds(rows, d.rows), holds(context, d.context);
      holds(initial, d.initial);
      for (auto* g : {&gradient, &d_rows, &d_context, &d_initial})
        untouched = untouched && g->pulled().margins_untouched();
      return untouched;
    }
    template <class F>
    void each(const F& f) {
      for (array* a : {&parameters, &rows, &context, &c, &initial, &gradient, &d_rows, &d_context,
                       &d_initial, &seen})
        f(*a);
    }
  };

  static constexpr const char* gradient_of = "gradient of ";

  // What a step finds in its arena and ledger is nobody's business: NaN in fp32 and fp64.
  void poison_arena() {
    const auto block = engine_.block();
    auto* const start = reinterpret_cast<Scalar*>(const_cast<std::byte*>(block.data()));
    Scalar nan;
    std::memset(&nan, 0xff, sizeof nan);
    fill(on_, nan, {start, 1, position(block.size() / sizeof nan)});
    const auto ledger = engine_.ledger_block();
    std::memset(const_cast<std::byte*>(ledger.data()), 0xff, ledger.size());
  }

  // Laws of every single step.
  void check(std::int64_t asked, std::size_t stack, const given& data, buffers& b) {
    if (of_.into == nullptr) return;
    report& r = *of_.into;
    r.count_step();
    const step_plan& p = engine_.plan();
    if (engine_.high_water() != p.peak())
      r.add(law::memory, sentence("the arena handed out ", engine_.high_water(), " bytes, ",
                                  p.peak(), " were planned; ", words(p)));
    const bool ordinary = !of_.watched.on && of_.watched.tasks == nullptr;
    if (asked != 0 && ordinary)
      r.add(law::memory,
            sentence("memory was asked for ", asked, " times during a step; ", words(p)));
    if (stack > most_stack && ordinary)
      r.add(law::memory, sentence("a step went ", stack, " bytes or more down the stack, where ",
                                  most_stack, " are allowed; ", words(p)));
    if (!b.intact(data))
      r.add(law::memory, sentence("a step wrote to its inputs or outside its outputs; ", words(p)));
    // Where no label counts nothing runs.
    const big_count planned = engine_.share_of_window(b.batch) > 0 ? p.flops : 0;
    if (engine_.flops() != planned)
      r.add(law::flops, sentence("primitives counted ", engine_.flops(), " FLOPs, ", planned,
                                 " were planned; ", words(p)));
  }

  void collect(outcome& to, const given& data, buffers& b) {
    const auto add = [&](std::string name, tensor_kind kind, position cols, position offset,
                         auto from) {
      if (!from.empty())
        to.tensors.push_back({std::move(name), kind, cols, offset, {from.begin(), from.end()}});
    };
    if (on_layer_) {
      add("y", tensor_kind::output, of_.results, 0, b.seen.host());
    } else if (of_.scores) {
      std::vector<double> scored(std::size_t(data.samples.tokens()));
      engine_.log_probabilities(b.parameters.span(), b.batch, scored);
      add("log-probability", tensor_kind::output, 1, 0, scored);
    }
    for (const auto& entry : engine_.parameters().entries)
      if (entry.gradient >= 0)
        add(gradient_of + entry.name, tensor_kind::parameter, entry.cols, entry.offset,
            b.gradient.host().subspan(entry.gradient, entry.size()));
    if (of_.features > 0)
      add("gradient of x", tensor_kind::input, of_.features, 0, b.d_rows.host());
    if (!data.context.empty())
      add("gradient of the context", tensor_kind::context, of_.features, 0, b.d_context.host());
    add("gradient of the initial state", tensor_kind::initial, 1, 0, b.d_initial.host());
  }

  const subject& of_;
  functional<Scalar>* on_layer_;
  step_runner<Device> engine_;
  Device on_{1};  // fills, reads and writes arrays
};

}  // namespace streambp::laws
