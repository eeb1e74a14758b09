// The sections of a model without its type: what sweeps over them is compiled once a device.
#pragma once

#include <string>
#include <string_view>

#include "../core/error.hpp"
#include "../schedule/instances.hpp"
#include "run_section.hpp"

namespace streambp {

// One virtual call a section and chunk; layers behind it are called statically. Section count() + h
// is head h.
template <class Device>
class section_runner {
 public:
  using scalar = typename Device::scalar;

  virtual ~section_runner() = default;
  virtual const section_list& list() const = 0;

  // As run_forward, run_backward, run_context and side_losses of run_section.hpp. Randomness is
  // keyed by the section's number: the halves of an operator share one.
  virtual void forward(Device& on, position i, section_cell<scalar>& cell, const chunk_place& at,
                       section_input<scalar> in, view<scalar> out, const visit& why) const = 0;
  virtual view<scalar> backward(Device& on, position i, section_cell<scalar>& cell,
                                const chunk_place& at, section_input<scalar> in,
                                view<const scalar> out, view<scalar> dy,
                                const visit& why) const = 0;
  virtual void context(Device& on, position i, section_cell<scalar>& cell, const chunk_place& at,
                       view<const scalar> c, view<scalar> dc) const = 0;
  virtual double side_losses(Device& on, position i, section_cell<scalar>& cell,
                             const chunk_place& at) const = 0;
};

namespace detail {

// What a layer's call says, after the layer's place: of blocks.3.linear "linear: ..." is once said.
inline std::string said_of(const std::string& label, std::string_view what) {
  const std::string_view name = what.substr(0, what.find(": "));
  const std::string_view own = std::string_view(label).substr(label.rfind('.') + 1);
  if (name.size() < what.size() && own.starts_with(name)) what.remove_prefix(name.size() + 2);
  return sentence(label, ": ", what);
}

}  // namespace detail

template <class Device, class Model>
class model_sections final : public section_runner<Device> {
 public:
  using scalar = typename Device::scalar;

  // Throws shape_error when layers do not fit together.
  model_sections(const Model& model, position features) : list_(model, features) {}

  const instance_list<Model>& list() const override { return list_; }

  void forward(Device& on, position i, section_cell<scalar>& cell, const chunk_place& at,
               section_input<scalar> in, view<scalar> out, const visit& why) const override {
    with(i, [&](const auto& s) { run_forward(on, s, cell, at, number_of(i), in, out, why); });
  }
  view<scalar> backward(Device& on, position i, section_cell<scalar>& cell, const chunk_place& at,
                        section_input<scalar> in, view<const scalar> out, view<scalar> dy,
                        const visit& why) const override {
    view<scalar> dx;
    with(i, [&](const auto& s) {
      dx = run_backward(on, s, cell, at, number_of(i), in, out, dy, why);
    });
    return dx;
  }
  void context(Device& on, position i, section_cell<scalar>& cell, const chunk_place& at,
               view<const scalar> c, view<scalar> dc) const override {
    with(i, [&](const auto& s) {
      if constexpr (std::decay_t<decltype(s)>::steps.crosses())
        run_context(on, s, cell, at, number_of(i), c, dc);
    });
  }
  double side_losses(Device& on, position i, section_cell<scalar>& cell,
                     const chunk_place& at) const override {
    double value = 0;
    with(i, [&](const auto& s) {
      if constexpr (std::decay_t<decltype(s)>::steps.holds_tally())
        value = streambp::side_losses(on, s, cell, at, number_of(i));
    });
    return value;
  }

 private:
  using split = typename instance_list<Model>::split;

  std::uint64_t number_of(position i) const {
    const bool read = i < position(list_.count()) && list_[i].part == half::read;
    return std::uint64_t(i) - read;
  }
  // What does not fit in a layer's own calls is said of the layer.
  template <class F>
  void with(position i, F&& f) const {
    const auto head = int(i - position(list_.count()));
    try {
      if (head < 0)
        with_index<split::trunk_count>(list_[i].type, [&](auto t) { f(std::get<t>(list_.trunk)); });
      else
        with_index<split::head_count>(head, [&](auto h) {
          const auto& own = std::get<h>(list_.head_sections);
          if constexpr (std::decay_t<decltype(own)>::steps.size > 0) f(own);
        });
    } catch (const shape_error& e) {
      throw shape_error(detail::said_of(list_[i].label(), e.what()));
    }
  }

  instance_list<Model> list_;
};

}  // namespace streambp
