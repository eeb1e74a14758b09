// expect: attention sees the past or all of its segment
#include <streambp/layers/attention.hpp>

int main() { streambp::attention<streambp::row>({.features = 8}); }
