// The inner loop of products: four rows of y by one panel of three packets, in registers.
#pragma once

#include <Eigen/Core>

#include "../core/view.hpp"
#include "../primitives/write.hpp"
#include "isa.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {
namespace kernel {

// Keeps a packet in its register: g++ would fold its load into each of the four multiplications,
// and the loop would wait for twelve loads a step instead of three.
template <class Packet>
[[gnu::always_inline]] inline void keep_in_register(Packet& packet) {
#if defined(__AVX512F__)
  asm("" : "+v"(packet));
#elif defined(__SSE2__)
  asm("" : "+x"(packet));
#else
  (void)packet;
#endif
}

template <class S>
struct panel {
  using packet = typename Eigen::internal::packet_traits<S>::type;
  static constexpr position width = Eigen::internal::packet_traits<S>::size;
  static constexpr position packets = 3;
  static constexpr position cols = packets * width;  // of y
  static constexpr position rows = 4;

  // y (4, cols) (+)= Σ_k x[k] w[k]: x packed (depth, 4), w packed (depth, cols). An entry is one
  // chain of fused multiply-adds over k from 0, added to y at its end: the same as Eigen's kernel.
  [[gnu::always_inline]] static void multiply(const S* x, const S* w, position depth, S* y,
                                              position stride, write how) {
    using namespace Eigen::internal;
    packet sum[rows][packets];
    for (auto& row : sum)
      for (packet& s : row) s = pset1<packet>(S(0));
    for (position k = 0; k < depth; ++k, x += rows, w += cols) {
      packet wk[packets];
      for (position c = 0; c < packets; ++c) {
        wk[c] = pload<packet>(w + c * width);
        keep_in_register(wk[c]);
      }
#pragma GCC unroll 4
      for (position r = 0; r < rows; ++r) {
        const packet xk = pset1<packet>(x[r]);
        for (position c = 0; c < packets; ++c) sum[r][c] = pmadd(xk, wk[c], sum[r][c]);
      }
    }
    for (position r = 0; r < rows; ++r)
      for (position c = 0; c < packets; ++c) {
        S* const at = y + r * stride + c * width;
        if (how == write::assign)
          pstoreu(at, sum[r][c]);
        else
          pstoreu(at, padd(ploadu<packet>(at), sum[r][c]));
      }
  }

  // The whole panels of y (rows, cols); rows a multiple of 4.
  [[gnu::noinline]] static void multiply_all(const S* x, const S* w, position depth, view<S> y,
                                             write how) {
    for (position j = 0; j + cols <= y.cols; j += cols)
      for (position i = 0; i < y.rows; i += rows)
        multiply(x + i * depth, w + j * depth, depth, y.row(i) + j, y.stride, how);
  }
};

}  // namespace kernel
}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
