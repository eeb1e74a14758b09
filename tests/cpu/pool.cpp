#include <streambp/cpu/pool.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
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

TEST_CASE("what a task throws arrives at the caller, the lowest task's, and the pool goes on") {
  for (int threads : {1, 2, 5}) {
    cpu::pool pool(threads);
    for (int round = 0; round < 500; ++round) {
      INFO(threads, " threads, round ", round);
      std::atomic<int> running = 0;
      int said = -1;
      try {
        const auto dies_with_the_call = std::make_unique<int>(round);
        pool.run(40, [&](position i, int) {
          ++running;
          if (i % 7 == 3 && i > 9 - round % 3) {
            --running;
            throw int(i);
          }
          if (*dies_with_the_call != round) said = -2;
          --running;
        });
      } catch (int task) {
        said = task;
      }
      CHECK(running == 0);
      CHECK(said == 10);
      std::atomic<int> calls = 0;
      pool.run(9, [&](position, int) { ++calls; });
      CHECK(calls == 9);
    }
  }
}

TEST_CASE("of two tasks that throw at once the lower one's arrives, also when it threw first") {
  cpu::pool pool(2);
  for (const position first : {0, 1}) {
    std::atomic<int> here = 0;
    position said = -1;
    try {
      pool.run(2, [&](position i, int) {
        // Both threads must come before one throws.
        ++here;
        while (here < 2) std::this_thread::yield();
        if (i != first) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        throw i;
      });
    } catch (const position task) {
      said = task;
    }
    CHECK(said == 0);
  }
}

TEST_CASE("a task that shares out tasks of its own gets a sentence") {
  for (int threads : {1, 3}) {
    cpu::pool pool(threads), other(2);
    std::atomic<int> calls = 0;
    // Tasks of another pool are another matter.
    pool.run(4, [&](position, int) { ++calls; });
    std::string said;
    try {
      pool.run(4, [&](position, int) { pool.run(2, [](position, int) {}); });
    } catch (const error& e) {
      said = e.what();
    }
    CHECK(said.starts_with("a task that is shared out to threads may not share out tasks"));
    pool.run(1, [&](position, int) { other.run(2, [&](position, int) { ++calls; }); });
    CHECK(calls == 6);
  }
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a pool of more threads than the system gives says how many it got") {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit few = before;
  few.rlim_cur = pages * 4096 + (std::size_t(256) << 20);  // of address space, a stack is 8 MiB
  REQUIRE(setrlimit(RLIMIT_AS, &few) == 0);
  std::string said;
  try {
    cpu::pool many(1000);
  } catch (const error& e) {
    said = e.what();
  }
  setrlimit(RLIMIT_AS, &before);
  CHECK(said.starts_with("only "));
  CHECK(said.find(" of 1000 threads could be started: ") != std::string::npos);
}
#endif
