// Where a training stands, in a file: it goes on from there with the bits of one that never
// stopped.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/grain.hpp"
#include "../core/warning.hpp"
#include "../default_bodies.hpp"
#include "../optim/adamw.hpp"
#include "../primitives/look.hpp"
#include "../schedule/parameters.hpp"
#include "safetensors.hpp"

namespace streambp {

// What only the program knows, by names of its own: the place in the data, seeds.
struct progress {
  std::map<std::string, std::uint64_t> counts;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> bytes;

  bool operator==(const progress&) const = default;
};

struct loaded_training {
  streambp::progress progress;
  std::string other_build;    // a sentence, when another build saved it; empty: the same bits
  std::string other_options;  // a sentence, when the optimizer had other options; warned of, too
};

// Whether a state that another build saved may go on, with other roundings.
enum class from_build { same, any };

// What the bits of a step depend on beside model, data and parameters.
template <class Device>
std::map<std::string, std::string> build_facts(geometry grains) {
  auto facts = Device::facts();
  facts.insert({{"streambp.precision", std::string(tensor_type_of<typename Device::scalar>())},
                {"streambp.compiler", __VERSION__},
                {"streambp.tile", sentence(grains.tile)},
                {"streambp.grain", sentence(grains.grain)}});
  return facts;
}

namespace detail {

// As many digits as tell it from all others.
inline std::string in_digits(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}
inline std::map<std::string, std::string> option_facts(const adamw_options& o) {
  return {{"adamw.beta1", in_digits(o.beta1)},
          {"adamw.beta2", in_digits(o.beta2)},
          {"adamw.epsilon", in_digits(o.epsilon)},
          {"adamw.decay", in_digits(o.decay)}};
}

// What differs, fact by fact; a fact that the file does not have is none.
inline std::string differences(const tensor_file& file,
                               const std::map<std::string, std::string>& here) {
  std::string all;
  for (const auto& [fact, now] : here)
    if (const auto there = file.metadata().find(fact);
        there != file.metadata().end() && there->second != now)
      all += sentence(all.empty() ? "" : ", ", fact, " was '", shown(there->second),
                      "', here it is '", now, "'");
  return all;
}

inline constexpr const char *state_parameter = "parameter.", *state_first = "adamw.first.",
                            *state_second = "adamw.second.", *state_steps = "adamw.steps",
                            *state_count = "count.", *state_number = "number.",
                            *state_bytes = "bytes.";

inline std::vector<std::uint64_t> shape_of(const parameter_info& p) {
  return {std::uint64_t(p.rows), std::uint64_t(p.cols)};
}

inline std::string in_words(const std::vector<std::uint64_t>& shape) {
  std::string words;
  for (const std::uint64_t extent : shape) words += sentence(words.empty() ? "" : " x ", extent);
  return words.empty() ? "one number" : words;
}

// What is left of a name behind its kind; nothing for one of another kind.
inline bool take_kind(std::string_view& name, std::string_view kind) {
  if (name.substr(0, kind.size()) != kind) return false;
  name.remove_prefix(kind.size());
  return true;
}

// What a model that has changed since can do.
inline constexpr const char* read_by_name = "; tensor_file reads what the two share, name by name";

template <class Scalar>
void read_parameter(const tensor_file& file, const char* kind, const parameter_info& p,
                    Scalar* into) {
  const tensor_entry* t = file.find(kind + p.name);
  if (!t)
    fail(file.path(), sentence("is of another model: it holds no '", kind, p.name, "', which is ",
                               in_words(shape_of(p)), " here", read_by_name));
  if (t->shape != shape_of(p))
    fail(file.path(), sentence("is of another model: '", kind, p.name, "' is ", in_words(t->shape),
                               ", here it is ", in_words(shape_of(p))));
  file.read(*t, std::span(into, std::size_t(p.size())));
}

template <class T>
T read_one(const tensor_file& file, const tensor_entry& t) {
  T value{};
  file.read(t, std::span(&value, 1));
  return value;
}

// Everything else that the file holds; what belongs to a parameter must be one of the model's.
inline progress read_rest(const tensor_file& file, const parameter_table& table) {
  std::map<std::string_view, bool> trains;
  for (const parameter_info& p : table.entries) trains[p.name] = p.gradient >= 0;
  progress found;
  for (const tensor_entry& t : file.tensors()) {
    std::string_view name = t.name;
    if (name == state_steps) continue;
    const bool moment = take_kind(name, state_first) || take_kind(name, state_second);
    if (moment || take_kind(name, state_parameter)) {
      const auto own = trains.find(name);
      if (own == trains.end() || (moment && !own->second))
        fail(file.path(),
             sentence("is of another model: it holds '", shown(t.name), "', ",
                      own == trains.end() ? "and there is none here" : "which is frozen here",
                      read_by_name));
    } else if (take_kind(name, state_count)) {
      found.counts.emplace(name, read_one<std::uint64_t>(file, t));
    } else if (take_kind(name, state_number)) {
      found.numbers.emplace(name, read_one<double>(file, t));
    } else if (take_kind(name, state_bytes)) {
      std::string& bytes = found.bytes[std::string(name)];
      bytes.resize(std::size_t(t.bytes()));
      file.read(t, std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
    } else {
      fail(file.path(), sentence("holds '", shown(t.name), "', which no training's state does"));
    }
  }
  return found;
}

}  // namespace detail

// Writes parameters, the optimizer's moments, steps and options, and the program's own progress,
// whole or not at all: a process that is killed leaves the state of before or this one. `step` is
// the engine.
template <class Engine, class Scalar, class Device>
void save_training(const std::string& path, const Engine& step,
                   std::type_identity_t<std::span<const Scalar>> parameters,
                   const adamw<Scalar, Device>& optimizer, const progress& own = {}) {
  const parameter_table& table = step.parameters();
  const std::span<const Scalar> first = optimizer.first_moments(),
                                second = optimizer.second_moments();
  if (position(parameters.size()) != table.parameters || position(first.size()) != table.gradients)
    throw shape_error(sentence("save_training: ", parameters.size(), " parameters and ",
                               first.size(), " moments, the engine has ", table.parameters, " and ",
                               table.gradients));
  table.expect_unique_names();
  Device on(1);
  const primitives::host_copy<Device> seen(on, parameters), seen_first(on, first),
      seen_second(on, second);
  std::vector<tensor_source> all;
  for (const parameter_info& p : table.entries) {
    const auto put = [&](const char* kind, const auto& from, position offset) {
      all.push_back(tensor(kind + p.name, detail::shape_of(p),
                           from.entries().subspan(std::size_t(offset), std::size_t(p.size()))));
    };
    put(detail::state_parameter, seen, p.offset);
    if (p.gradient < 0) continue;
    put(detail::state_first, seen_first, p.gradient);
    put(detail::state_second, seen_second, p.gradient);
  }
  const std::uint64_t steps = std::uint64_t(optimizer.steps());
  all.push_back(tensor(detail::state_steps, {}, std::span(&steps, 1)));
  for (const auto& [name, count] : own.counts)
    all.push_back(tensor(detail::state_count + name, {}, std::span(&count, 1)));
  for (const auto& [name, number] : own.numbers)
    all.push_back(tensor(detail::state_number + name, {}, std::span(&number, 1)));
  for (const auto& [name, bytes] : own.bytes)
    all.push_back(
        tensor(detail::state_bytes + name, {bytes.size()},
               std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())));
  auto facts = build_facts<Device>(step.plan().shape.grains);
  facts.merge(detail::option_facts(optimizer.options()));
  write_tensors(path, std::move(all), facts);
}

// Reads what save_training wrote for the same model. Throws file_error for a file of another model,
// precision or, unless asked for, build, and data_error for numbers that cannot be; then parameters
// and optimizer are as before. The optimizer's options stay the program's; where the file has
// others a warning says so.
template <class Engine, class Scalar, class Device>
loaded_training load_training(const std::string& path, const Engine& step,
                              std::type_identity_t<std::span<Scalar>> parameters,
                              adamw<Scalar, Device>& optimizer,
                              from_build build = from_build::same) {
  const parameter_table& table = step.parameters();
  if (position(parameters.size()) != table.parameters)
    throw shape_error(sentence("load_training: ", parameters.size(), " parameters, the engine has ",
                               table.parameters));
  table.expect_unique_names();
  const tensor_file file(path);
  loaded_training loaded;
  const auto build_here = build_facts<Device>(step.plan().shape.grains);
  for (const auto& [fact, here] : build_here)
    if (!file.metadata().contains(fact))
      detail::fail(path, sentence("is no training's state: it does not say ", fact));
  if (const std::string& there = file.metadata().at("streambp.precision"),
      &here = build_here.at("streambp.precision");
      there != here)
    detail::fail(path, sentence("was saved by an engine of ", shown(there), ", this one is of ",
                                here, "; make the engine and the optimizer of that type"));
  loaded.other_build = detail::differences(file, build_here);
  if (!loaded.other_build.empty()) {
    loaded.other_build = path + ": was saved by another build: " + loaded.other_build;
    if (build == from_build::same)
      throw file_error(loaded.other_build +
                       "; from_build::any goes on all the same, with other roundings");
  }
  std::vector<Scalar> values(parameters.size()), first(std::size_t(table.gradients)),
      second(std::size_t(table.gradients));
  for (const parameter_info& p : table.entries) {
    Scalar* const own = values.data() + p.offset;
    detail::read_parameter(file, detail::state_parameter, p, own);
    for (position i = 0; i < p.size(); ++i)
      if (!std::isfinite(own[i]))
        throw data_error(sentence(path, ": ", p.name, " is ", own[i], " at entry ", i));
    if (p.gradient < 0) continue;
    detail::read_parameter(file, detail::state_first, p, first.data() + p.gradient);
    detail::read_parameter(file, detail::state_second, p, second.data() + p.gradient);
  }
  loaded.progress = detail::read_rest(file, table);
  const auto steps = detail::read_one<std::uint64_t>(file, file[detail::state_steps]);
  if (steps > std::uint64_t(largest_size))
    detail::fail(path, sentence("holds ", steps, " steps of the optimizer, at most ", largest_size,
                                " can be"));
  optimizer.restore(position(steps), first, second);
  Device on(1);
  write_rows(on, values, {parameters.data(), 1, position(values.size())});
  loaded.other_options = detail::differences(file, detail::option_facts(optimizer.options()));
  if (!loaded.other_options.empty()) {
    loaded.other_options = path +
                           ": was saved by an optimizer of other options: " + loaded.other_options +
                           "; training goes on with those of here";
    warn(loaded.other_options);
  }
  return loaded;
}

}  // namespace streambp
