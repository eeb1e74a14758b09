// expect: no tensor in a file is of this type
#include <streambp/io/safetensors.hpp>

using namespace streambp;

tensor_source of(std::span<const bool> flags) {
  return tensor<bool>("flags", {flags.size()}, flags);
}
