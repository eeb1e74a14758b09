// The device of a program that names none: the CPU.
#pragma once

#include "cpu/device.hpp"

namespace streambp {

template <class Scalar>
using default_device = cpu::device<Scalar>;

}  // namespace streambp
