// expect: heads(...) has one head at least
#include <streambp/model/compose.hpp>

int main() { streambp::heads(); }
