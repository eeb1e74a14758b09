// A folder of this process, removed at its end.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace streambp {

inline const std::string& folder() {
  static const struct place {
    std::string path = (std::filesystem::temp_directory_path() / "streambp-XXXXXX").string();
    pid_t owner = ::getpid();
    place() {
      if (!::mkdtemp(path.data())) std::abort();
    }
    ~place() {
      std::error_code ignored;
      if (owner == ::getpid()) std::filesystem::remove_all(path, ignored);
    }
  } here;
  return here.path;
}

}  // namespace streambp
