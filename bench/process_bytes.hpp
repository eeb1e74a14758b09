// Bytes of the whole process, as Linux and the allocator count them.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace bench {

// A line of /proc/self/status, such as VmRSS or VmHWM; 0 where there is none. Counts whole pages.
inline std::size_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) << 10;
  return 0;
}

inline std::size_t resident_bytes() { return status_bytes("VmRSS"); }
// The most that was resident since the last restart.
inline std::size_t most_resident_bytes() { return status_bytes("VmHWM"); }
// Tells whether the system could do it.
inline bool restart_most_resident() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << 5 << std::flush;
  return bool(clear);
}

// What malloc has given out and not got back; the arena is not of malloc.
inline std::size_t malloc_bytes() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

}  // namespace bench
