// expect: no tensor in a file is of this type
#include <streambp/io/safetensors.hpp>

using namespace streambp;

void flags_of(const tensor_file& file, std::span<bool> into) { file.read(file["flags"], into); }
