// Runs a plan: sweeps over chunks, stage by stage, in one arena that it owns. Models and losses are
// behind section_runner and loss_runner, so that this is compiled once a device.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../core/overlap.hpp"
#include "loss_runner.hpp"
#include "section_runner.hpp"
#include "storage.hpp"
#include "tensor_list.hpp"

namespace streambp {

// What the engine did, for tests: one entry a visited chunk.
struct trace_event {
  sweep what{};
  row_range rows{};
  constexpr bool operator==(const trace_event&) const = default;
};

namespace detail {

// Held by the one step that runs. An engine that is moved has no step.
class step_lock {
 public:
  step_lock() = default;
  step_lock(step_lock&&) noexcept {}
  step_lock& operator=(step_lock&&) noexcept { return *this; }
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace detail

// One step at a time: of two threads that call at once, one gets an error. What is not a step (the
// hook, the trace, loss(), the count of FLOPs) is not to be touched while one runs.
template <class Device>
class step_runner {
 public:
  using scalar = typename Device::scalar;
  using batch_type = batch<scalar>;
  using parameter_list = tensor_list<const scalar>;
  using gradient_list = tensor_list<scalar>;

  // Allocates everything that steps will need. Throws shape_error when the plan was made for
  // another model or changed since, error when the system has less.
  step_runner(step_plan p, std::shared_ptr<const section_runner<Device>> sections,
              std::vector<std::unique_ptr<loss_runner<Device>>> losses)
      : plan_(std::move(p)),
        sections_(std::move(sections)),
        heads_(heads_with(std::move(losses))),
        head_values_(heads_.size(), 0),
        storage_(model()),
        lowest_(plan_.shape.input_gradient ? 0 : model().lowest_trained()),
        stages_(checked_stages()),
        reading_sweeps_(reading_sweeps_of(stages_)),
        block_(checked_bytes()),
        host_(ledger_bytes()),
        on_(plan_.shape.threads) {
    arena from(block_.data(), block_.size());
    storage_.place(from, model(), plan_);
    arena of_host(host_.data(), host_.bytes().size());
    ledger_.place(of_host, model(), plan_, couples());
    high_water_ = from.high() + of_host.high();
    on_.lend(storage_.packing.data, model().table.longest_side());
    initial_size_ = model().initial_size(plan_.shape.prefix);
    listed_.resize(std::size_t(std::max(most_edges(plan_.grains, plan_.chunks),
                                        most_edges(plan_.context_grains, plan_.context_chunks))));
    head_listed_.resize(std::size_t(most_edges(plan_.head_grains, plan_.head_chunks)));
  }
  // Of one head.
  step_runner(step_plan p, std::shared_ptr<const section_runner<Device>> sections,
              std::unique_ptr<loss_runner<Device>> loss)
      : step_runner(std::move(p), std::move(sections), alone(std::move(loss))) {}

  const parameter_table& parameters() const { return model().table; }
  const step_plan& plan() const { return plan_; }
  // Bytes that the arena and the ledger handed out at most: equal to plan().peak().
  std::size_t high_water() const { return high_water_; }
  // The device's memory, and the host's, of the losses' rows and sums.
  std::span<const std::byte> block() const { return {block_.data(), block_.size()}; }
  std::span<const std::byte> ledger_block() const { return host_.bytes(); }

  // Adds the gradient of the loss to `gradient` and returns the loss. Allocates nothing. What a
  // layer, a loss or a hook throws leaves a part of it added; the next step is as good as any.
  // Throws numeric_error when the loss or a gradient is not finite; what was added is of no use.
  double add_gradient(const parameter_list& parameters, const batch_type& data,
                      const gradient_list& gradient) {
    if (gradient.empty() && model().table.gradients > 0 && data.d_rows.rows == 0 &&
        data.d_context.rows == 0 && data.d_initial.empty())
      throw shape_error(sentence(
          "add_gradient: no gradient is asked for; give a buffer of parameters().gradients = ",
          model().table.gradients, " numbers, or take value(), the loss alone"));
    const one_step running(*this);
    open(parameters, data, gradient, true);
    for (const sweep& s : plan_.sweeps) run(s);
    const double value = close();
    expect_finite(value, gradient);
    return value;
  }

  // The loss and a new gradient, the one-line convenience.
  std::pair<double, std::vector<scalar>> value_and_gradient(const parameter_list& parameters,
                                                            const batch_type& data) {
    std::vector<scalar> gradient(std::size_t(model().table.gradients));
    const double value = add_gradient(parameters, data, gradient);
    return {value, std::move(gradient)};
  }

  // The loss alone: the forward pass and the head. The same bits as add_gradient's value.
  double value(const parameter_list& parameters, const batch_type& data) {
    const one_step running(*this);
    open(parameters, data, {}, true);
    read(head_visit::value);
    couple(false);
    add_side_losses();
    const double value = close();
    expect_finite(value, {});
    return value;
  }

  // What each head added to the last value that was returned: its loss times its factor. Side
  // losses are nobody's.
  std::span<const double> head_values() const { return head_values_; }

  // out[t] is the log-probability of label t given the tokens before it in its sample, by one head;
  // 0 where label t is not scored. Other heads need no labels.
  void log_probabilities(const parameter_list& parameters, const batch_type& data,
                         std::span<double> out, position head = 0) {
    expect_head("log_probabilities", head);
    if (heads_[std::size_t(head)].facts.sees_rows)
      throw error("log_probabilities: the loss is of whole rows, and no label has one");
    expect_size("log_probabilities: places", out.size(), samples().tokens());
    const one_step running(*this);
    open(parameters, data, {}, true, bytes_of(out), {head, head + 1});
    for (double& v : out) v = 0;
    log_probabilities_ = out;
    read(head_visit::log_probabilities);
  }

  // A head's result (logits, before the loss's scale and softcap) for the last row of each sample,
  // (segments, vocabulary). An empty sample's row is not touched. Needs no labels.
  void last_results(const parameter_list& parameters, const batch_type& data, view<scalar> out,
                    position head = 0) {
    expect_head("last_results", head);
    expect_rows("last_results: out", out, samples().segments(),
                model().heads[std::size_t(head)].out);
    const one_step running(*this);
    open(parameters, data, {}, false, bytes_of(out), {head, head + 1});
    last_results_ = out;
    read(head_visit::last_results);
  }

  // Called once for each parameter's gradient as soon as it is final: (offset, count) in a buffer,
  // and for a list of views, too, the offset is that of the table's entry.
  void when_final(std::function<void(position, position)> hook) { hook_ = std::move(hook); }

  // Scalars of batch::initial: for each section in order, memory slots as (prefix, width), then
  // carries.
  position initial_size() const { return initial_size_; }

  // What part of its accumulation window a step on the data is.
  double share_of_window(const batch_type& data) const {
    return heads_.front().loss->share_of_window(samples(), data.of_head(0));
  }
  // Whether a step on the data depends on a segment's rows. Labels that do not fit count as scored.
  bool counts(const batch_type& data, position segment) const;

  // Primitives' FLOPs since construction or the last reset.
  big_count flops() const { return on_.flops(); }
  void reset_flops() { on_.reset_flops(); }

  void trace(std::vector<trace_event>* into) { trace_ = into; }

  // Memories, and rows of another stream, with their gradients lie in `store` from now on (null: in
  // the arena, which has room for them all the same). It outlives the steps.
  void keep_memories_in(row_store<scalar>* store) {
    for (position i = 0; i < position(model().count()); ++i)
      for_each_slot(instance(i), cell(i), [&](const slot_info& slot, slot_cell<scalar>& own) {
        if (slot.kind == slot_kind::memory || slot.kind == slot_kind::context) own.store = store;
      });
  }

  // Whether a loss or a gradient that is not finite is an error (it is, unless turned off).
  void refuse_what_is_not_finite(bool on) { refuses_not_finite_ = on; }

 protected:
  loss_runner<Device>& any_loss(position head) { return *heads_[std::size_t(head)].loss; }

 private:
  // An output head's loss, and what of the step that runs is its own.
  struct output_head {
    std::unique_ptr<loss_runner<Device>> loss;
    loss_facts facts;
    batch_type data{};
    double factor = 1;
  };
  static std::vector<output_head> heads_with(
      std::vector<std::unique_ptr<loss_runner<Device>>> losses) {
    std::vector<output_head> all;
    for (auto& loss : losses) {
      const loss_facts facts = loss->facts();
      all.push_back({std::move(loss), facts});
    }
    return all;
  }
  static std::vector<std::unique_ptr<loss_runner<Device>>> alone(
      std::unique_ptr<loss_runner<Device>> loss) {
    std::vector<std::unique_ptr<loss_runner<Device>>> one;
    one.push_back(std::move(loss));
    return one;
  }
  position head_count() const { return position(heads_.size()); }
  coupled_heads couples() const {
    coupled_heads all;
    for (position h = 0; h < head_count(); ++h)
      if (const loss_facts& own = heads_[std::size_t(h)].facts; own.couples)
        all.add(h, !own.sees_rows);
    return all;
  }

  // What is taken off a head's rows.
  enum class head_visit { value, log_probabilities, last_results, summarise, gradient };

  // From a step's begin to its end, by an exception or not.
  class one_step {
   public:
    explicit one_step(step_runner& of) : of_(of) {
      if (!of.lock_.take())
        throw error(
            "engine: a step is running already; a hook or another thread may not start one");
    }
    ~one_step() {
      of_.data_ = nullptr;
      of_.lock_.give_back();
    }
    one_step(const one_step&) = delete;
    one_step& operator=(const one_step&) = delete;

   private:
    step_runner& of_;
  };

  const section_list& model() const { return sections_->list(); }
  const packed& samples() const { return plan_.shape.samples; }
  bool wants_input_gradient() const { return plan_.shape.input_gradient; }

  // In check.hpp: what is refused at the door.
  std::vector<stage_facts> checked_stages() const;
  std::size_t checked_bytes();
  std::size_t ledger_bytes();
  void check(const parameter_list& parameters, const gradient_list& gradient, bool labels,
             byte_range result) const;
  void check_parameters(const parameter_list& parameters, const gradient_list& gradient) const;
  void check_heads(bool labels) const;
  void expect_head(const char* what, position head) const;
  void check_input() const;
  void check_streams(bool gradient) const;
  void check_finite(bool gradient) const;
  static void expect_size(const char* what, std::size_t size, position wanted);
  template <class S>
  void check_shape(const char* what, const tensor_list<S>& given, position size) const;
  template <class S>
  static bool fits(view<S> given, position rows, position cols);
  template <class S>
  static void expect_rows(const char* what, view<S> given, position rows, position cols);

  // In finite.hpp: what is said of a loss or a gradient that is not finite.
  void expect_finite(double value, const gradient_list& gradient);
  std::string origin_of_the_infinite();
  void look_at(view<const scalar> rows, row_range at, position section);
  std::string name_of(const section_instance& instance) const;

  // In stand_in.hpp: samples of which nothing counts.
  void find_what_counts(bool labels);
  bool counts(const output_head& head, const batch_type& data, position segment) const;
  bool some_head_counts_all() const;
  void fill_scales(position h);
  view<const scalar> given_rows(view<const scalar> all, const chunk_place& at, row_range stand_in);

  // In step.hpp: a step's beginning and end. `heads`: those that it looks at; none: all.
  void open(const parameter_list& parameters, const batch_type& data, const gradient_list& gradient,
            bool labels, byte_range result = {}, row_range heads = {});
  void open_heads();
  double close();
  void bind(const parameter_list& parameters, const gradient_list& gradient);
  void bind_initial();

  // In sweeps.hpp.
  void run(const sweep& s);
  void read(head_visit what);
  void run_over_chunks(const sweep& s);
  void run_once(const sweep& s, const pass& p);
  void run_at(const sweep& s, const pass& p, position chunk);
  void run_sections_forward(const sweep& s, const pass& p, const chunk_place& at);
  void run_sections_backward(const sweep& s, const pass& p, const chunk_place& at);
  void run_heads_of(const sweep& s, const chunk_place& at, bool gradient);
  void announce_heads();
  view<scalar> gradient_rows(row_range rows) const;
  void couple(bool wants_gradient);
  chunk_place place_of(position index);
  chunk_place place_of(row_range rows, const edges& grains, std::vector<position>& listed) const;
  section_input<scalar> input_of_stage(position s, const chunk_place& at);
  section_input<scalar> input_of(position section, const chunk_place& at);
  view<scalar> result_of(position section, const chunk_place& at);
  void announce(const section_instance& instance);
  const stage_facts& stage(position s) const { return stages_[std::size_t(s)]; }
  position stage_count() const { return position(stages_.size()); }
  const section_instance& instance(position i) const { return model()[i]; }
  section_cell<scalar>& cell(position i) { return storage_.cells[std::size_t(i)]; }

  // In states.hpp: what sections hold across chunks.
  void start_memory(position section);
  void finish_memory(position section);
  void clear_state_gradients(position section);
  void clear_handed_gradients(position section, position chunk);
  void clear_tallies();
  template <class F>
  void for_each_prefix(position section, const F& f);
  void add_side_losses();
  chunk_place context_place(position chunk);
  view<const scalar> context_rows(const chunk_place& at);

  // In head.hpp.
  void sweep_heads(const sweep& s);
  void visit_heads(row_range rows, view<scalar> x, view<scalar> dx, head_visit why);
  void visit_head(position h, row_range rows, view<scalar> x, view<scalar> dx, head_visit why);
  void read_log_probabilities(position h, row_range rows, view<scalar> x);
  void read_last_results(position h, row_range rows, view<scalar> x);
  void run_loss(position h, row_range rows, view<scalar> x, view<scalar> dx, head_visit why);
  void run_terms(position h, const chunk_place& at, view<scalar> y, double* values, bool gradient);
  void run_head_forward(position h, row_range rows, view<scalar> x);
  void give(position h, view<const scalar> d, view<scalar> dx);
  view<scalar> head_result(position h, position rows) {
    const section_instance& own = model().heads[std::size_t(h)];
    return (own.empty() ? stored(h).result : stored(h).cell.value[own.steps->result])
        .middle_rows(0, rows);
  }
  head_storage<scalar>& stored(position h) { return storage_.heads[std::size_t(h)]; }
  head_ledger& sums(position h) { return ledger_.heads[std::size_t(h)]; }

  step_plan plan_;
  std::shared_ptr<const section_runner<Device>> sections_;
  std::vector<output_head> heads_;
  std::vector<double> head_values_;
  storage<Device> storage_;
  ledger ledger_;
  position lowest_;  // the first section whose backward is wanted
  std::vector<stage_facts> stages_;
  std::vector<sweep> reading_sweeps_;
  typename Device::memory block_;
  host_block host_;
  mutable Device on_;                           // its threads start when the bytes are there
  std::vector<position> listed_, head_listed_;  // grains of the chunk, and of the head chunk
  std::size_t high_water_ = 0;
  position initial_size_ = 0;
  std::function<void(position, position)> hook_;
  std::vector<trace_event>* trace_ = nullptr;
  detail::step_lock lock_;
  const batch_type* data_ = nullptr;  // of the step that runs
  head_visit reading_ = head_visit::value;
  row_range reading_heads_{};     // numbers of those that the step looks at
  bool none_counts_ = false;      // nothing runs then
  bool all_count_ = true;         // every sample
  row_range stand_in_{};          // rows in place of those of samples that count nothing ...
  row_range context_stand_in_{};  // ... and of the other stream's
  bool refuses_not_finite_ = true;
  bool warned_ = false;   // of labels that look shifted
  bool looking_ = false;  // for the first rows that are not finite
  std::string found_{};
  std::span<double> log_probabilities_{};
  view<scalar> last_results_{};
};

}  // namespace streambp

#include "check.hpp"
#include "finite.hpp"
#include "head.hpp"
#include "stand_in.hpp"
#include "states.hpp"
#include "step.hpp"
#include "sweeps.hpp"
