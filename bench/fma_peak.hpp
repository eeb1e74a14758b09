// The most FLOPs a second that one core does in registers, with the vectors of the compile flags.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <utility>

namespace bench {

template <class S>
struct peak_rate {
  double flops = 0;  // a second
  int lanes = 0;     // scalars in a vector
};

// x = x a + b in `Chains` independent vectors: enough of them to hide the latency, few enough that
// all stay in registers.
template <class S, std::size_t... Chain>
[[gnu::noinline]] double seconds_of_fma(long rounds, std::index_sequence<Chain...>) {
  using packet = typename Eigen::internal::packet_traits<S>::type;
  // Unknown to the compiler, which would fold away a chain that starts where it stays.
  volatile S factor = S(0.5), summand = S(1);
  const packet a = Eigen::internal::pset1<packet>(S(factor));
  const packet b = Eigen::internal::pset1<packet>(S(summand));
  packet x[sizeof...(Chain)] = {Eigen::internal::pset1<packet>(S(Chain))...};
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < rounds; ++i) ((x[Chain] = Eigen::internal::pmadd(x[Chain], a, b)), ...);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  S total = 0;
  ((total += Eigen::internal::predux(x[Chain])), ...);
  volatile S used = total;
  (void)used;
  return took.count();
}

// The best of some short runs: other programs only ever slow one down.
template <class S>
peak_rate<S> fma_peak() {
  constexpr std::size_t chains = 12;
  constexpr int lanes = Eigen::internal::packet_traits<S>::size, runs = 12;
  constexpr long rounds = 1'000'000;
  double best = 1e9;
  for (int run = 0; run < runs; ++run)
    best = std::min(best, seconds_of_fma<S>(rounds, std::make_index_sequence<chains>{}));
  return {2.0 * chains * lanes * rounds / best, lanes};
}

}  // namespace bench
