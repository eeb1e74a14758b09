#include <streambp/cpu/pool.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

using namespace streambp;

TEST_CASE("a pool calls every task once, in every round") {
  for (int threads : {1, 2, 3, 7}) {
    cpu::pool pool(threads);
    CHECK(pool.threads() == threads);
    std::vector<int> calls;
    for (int round = 0; round < 3000; ++round) {
      const position tasks = round % 23;
      calls.assign(std::size_t(tasks), 0);
      std::atomic<bool> stranger = false;
      pool.run(tasks, [&](position i, int thread) {
        ++calls[std::size_t(i)];  // whoever takes a task twice is seen here, or by a race checker
        if (thread < 0 || thread >= threads) stranger = true;
      });
      REQUIRE(calls == std::vector<int>(std::size_t(tasks), 1));
      REQUIRE(!stranger);
    }
  }
}

TEST_CASE("what tasks wrote is seen when run returns, and what the caller wrote is seen by tasks") {
  cpu::pool pool(2);
  std::vector<long> values(64, 1);
  for (int round = 0; round < 1000; ++round) {
    const long factor = round % 3 + 1;
    pool.run(64, [&](position i, int) {
      values[std::size_t(i)] = values[std::size_t((i))] * factor % 1000003;
    });
    for (long value : values) REQUIRE(value == values[0]);
  }
}

TEST_CASE("a pool wakes up after sleep, and shares out tasks that are long") {
  cpu::pool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> here = 0;
    std::atomic<int> together = 0;
    // Both threads must come: each task waits for the other.
    pool.run(2, [&](position, int) {
      ++here;
      while (here < 2) std::this_thread::yield();
      ++together;
    });
    CHECK(together == 2);
  }
}

TEST_CASE("a pool that never ran, or has no tasks, ends") {
  { cpu::pool idle(4); }
  cpu::pool pool(4);
  pool.run(0, [](position, int) { FAIL("there is no task"); });
}
