// What a check of the laws found: which law is broken, where, by how much.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "../core/language.hpp"

namespace streambp::laws {

enum class law : unsigned char {
  plan_independence,    // the same bits under every plan
  batch_independence,   // a sample's outputs do not depend on what it is packed with
  central_differences,  // gradients are slopes
  declaration,          // nothing is read that is not declared, whoever would see it
  accumulation,         // gradients are added to what is there
  frozen,               // a frozen layer costs no parameter gradient and changes no other one
  memory,               // predicted bytes are taken, no others; nothing else is written
  flops,                // FLOPs counted are those planned
  recomputation,        // a repeated step has no side effects and replays randomness
  nothing_to_see,       // rows with nothing to see, batches with nothing to score, give 0
  finite,               // results and gradients are numbers
  kinks,                // gradients are slopes, or between them, at zeros and ties
  single_precision,     // fp32 gives what fp64 gives
  task_order,           // tasks of a layer's loops do not depend on each other
  randomness,           // draws follow seed and step
  completion            // no call of a layer throws
};

inline constexpr int law_count = int(law::completion) + 1;

constexpr const char* name_of(law l) {
  switch (l) {
    case law::plan_independence:
      return "plan-independence";
    case law::batch_independence:
      return "batch-independence";
    case law::central_differences:
      return "central differences";
    case law::declaration:
      return "the declaration is true";
    case law::accumulation:
      return "gradients are added";
    case law::frozen:
      return "frozen costs nothing";
    case law::memory:
      return "memory is what was planned";
    case law::flops:
      return "FLOPs are what was planned";
    case law::recomputation:
      return "recomputation has no side effects";
    case law::nothing_to_see:
      return "nothing to see gives 0";
    case law::finite:
      return "gradients are numbers";
    case law::kinks:
      return "slopes at zeros and ties";
    case law::single_precision:
      return "fp32 agrees with fp64";
    case law::task_order:
      return "tasks in any order";
    case law::randomness:
      return "draws follow seed and step";
    case law::completion:
      return "a step runs to its end";
  }
  return "";
}

struct finding {
  law broken{};
  std::string what;
};

// True when every law holds. doctest, Catch2 and GoogleTest print it through operator<<.
class report {
 public:
  explicit operator bool() const { return findings_.empty(); }

  // Keeps the first finding of a law: the others, of another precision too, follow from the same
  // fault.
  void add(law broken, std::string what) {
    if (breaks(broken)) return;
    if (!precision_.empty()) what = precision_ + ": " + what;
    findings_.push_back({broken, std::move(what)});
  }
  // A law whose premise is broken, or that cannot speak of the subject, says nothing of its own.
  void skip(law unjudged, std::string why = "its premise is broken") {
    if (std::find(unjudged_.begin(), unjudged_.end(), unjudged) != unjudged_.end()) return;
    unjudged_.push_back(unjudged);
    reasons_.push_back(std::move(why));
  }
  void speak_of(std::string precision) { precision_ = std::move(precision); }
  void count_plans(std::size_t n) { plans_ += n; }
  void count_step() { ++steps_; }

  bool breaks(law l) const {
    return std::any_of(findings_.begin(), findings_.end(),
                       [l](const finding& f) { return f.broken == l; });
  }
  const std::vector<finding>& findings() const { return findings_; }
  const std::vector<law>& unjudged() const { return unjudged_; }
  const std::string& reason(std::size_t i) const { return reasons_[i]; }
  // How much was tried, so that a test can insist on it.
  std::size_t plans() const { return plans_; }
  std::size_t steps() const { return steps_; }
  double largest_error = 0;         // of central differences
  double largest_single = 0;        // of fp32, in shifts that moving all inputs by a rounding makes
  bool counted_allocations = true;  // false: count_allocations.hpp is not part of the program

 private:
  std::vector<finding> findings_;
  std::vector<law> unjudged_;
  std::vector<std::string> reasons_;
  std::string precision_;
  std::size_t plans_ = 0, steps_ = 0;
};

inline std::ostream& operator<<(std::ostream& out, const report& r) {
  for (const finding& f : r.findings())
    out << "broken: " << name_of(f.broken) << "\n    " << f.what << '\n';
  for (std::size_t i = 0; i < r.unjudged().size(); ++i)
    if (const law l = r.unjudged()[i]; !r.breaks(l))
      out << "not judged: " << name_of(l) << " (" << r.reason(i) << ")\n";
  if (r) out << "all laws hold";
  out << " (" << r.plans() << " plans, " << r.steps() << " steps, differences within "
      << r.largest_error
      << (r.counted_allocations
              ? ")"
              : "; allocations were not counted: include laws/count_allocations.hpp)");
  return out;
}

}  // namespace streambp::laws
