// expect: losses(...) takes one loss for each head
#include <streambp/traits/loss_list.hpp>

int main() { streambp::losses(); }
