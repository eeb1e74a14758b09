// The bodies of primitives for the device of a program that names none.
#pragma once

#include "cpu/bodies.hpp"
#include "default_device.hpp"
