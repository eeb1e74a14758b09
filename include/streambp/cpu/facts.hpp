// What the bits of a step on this build of the CPU depend on, for files that go on elsewhere.
#pragma once

#include "device.hpp"
#include "lanes.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class Scalar>
std::map<std::string, std::string> device<Scalar>::facts() {
  using sizes = blocking<Scalar>;
  return {{"streambp.instructions", isa},
          {"streambp.lanes", sentence(lanes<Scalar>::count, " of ", lanes<Scalar>::width)},
          {"streambp.blocking", sentence(sizes::depth, " ", sizes::height, " ", sizes::panel)}};
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
