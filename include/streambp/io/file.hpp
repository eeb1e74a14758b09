// Files by descriptor: read at a place, and written whole or not at all.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "../core/error.hpp"

namespace streambp {

// A name out of a file or from a user, fit for a message: printable, and of 60 letters at most.
inline std::string shown(std::string_view name) {
  constexpr std::size_t most = 60;
  std::string text(name.substr(0, most));
  for (char& letter : text)
    if (letter < ' ' || letter > '~') letter = '?';
  return name.size() > most ? text + "..." : text;
}

namespace detail {

[[noreturn]] inline void fail(const std::string& path, const std::string& what) {
  throw file_error(path + ": " + what);
}
[[noreturn]] inline void fail_by_system(const std::string& path, const char* what, int code) {
  fail(path, sentence(what, ": ", std::strerror(code)));
}

class descriptor {
 public:
  explicit descriptor(int number = -1) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { close(); }

  int number() const { return number_; }
  int close() { return number_ < 0 ? 0 : ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

}  // namespace detail

// A regular file. It is read, not mapped: one that shrinks meanwhile is an error, not a signal.
class input_file {
 public:
  // Throws file_error.
  explicit input_file(std::string path) : path_(std::move(path)) {
    // Without O_NONBLOCK a pipe would be waited for.
    file_ = detail::descriptor(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file_.number() < 0) detail::fail_by_system(path_, "cannot be opened", errno);
    struct stat is {};
    if (::fstat(file_.number(), &is) != 0)
      detail::fail_by_system(path_, "cannot be looked at", errno);
    if (!S_ISREG(is.st_mode)) detail::fail(path_, "is no regular file");
    size_ = std::uint64_t(is.st_size);
  }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  // Throws file_error unless all `count` bytes from `place` on could be read.
  void read(std::uint64_t place, void* into, std::size_t count) const {
    auto* to = static_cast<char*>(into);
    while (count > 0) {
      const ssize_t got = ::pread(file_.number(), to, std::min(count, most), off_t(place));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::fail_by_system(path_, "cannot be read", errno);
      if (got == 0)
        detail::fail(path_, sentence("ends at byte ", place, ", it had ", size_,
                                     "; did another program write to it?"));
      to += got;
      place += std::uint64_t(got);
      count -= std::size_t(got);
    }
  }

 private:
  static constexpr std::size_t most = std::size_t(1) << 30;

  std::string path_;
  detail::descriptor file_;
  std::uint64_t size_ = 0;
};

// Written beside PATH as PATH.part and renamed at the end: whoever opens PATH, whenever the process
// or the machine stops, finds the old file or the new one. Every member throws file_error, and what
// is not committed is removed.
class whole_file {
 public:
  explicit whole_file(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    constexpr int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
    file_ = detail::descriptor(::open(part_.c_str(), flags, 0666));
    if (file_.number() < 0) detail::fail_by_system(part_, "cannot be created", errno);
    struct stat is {};
    if (::fstat(file_.number(), &is) != 0 || !S_ISREG(is.st_mode))
      detail::fail(part_, "is no regular file");
    ours_ = true;
    if (::ftruncate(file_.number(), 0) != 0) give_up("cannot be emptied");
  }
  whole_file(const whole_file&) = delete;
  whole_file& operator=(const whole_file&) = delete;
  ~whole_file() { discard(); }

  void write(const void* from, std::size_t count) {
    const auto* next = static_cast<const char*>(from);
    while (count > 0) {
      const ssize_t done = ::write(file_.number(), next, std::min(count, std::size_t(1) << 30));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) give_up("cannot be written, and the file of before is kept");
      next += done;
      count -= std::size_t(done);
    }
  }

  void commit() {
    if (::fsync(file_.number()) != 0 || file_.close() != 0)
      give_up("cannot be written, and the file of before is kept");
    if (::rename(part_.c_str(), path_.c_str()) != 0) give_up("cannot be renamed");
    ours_ = false;
    // The new name lasts once the folder does. Not every file system can be asked.
    const std::size_t slash = path_.rfind('/');
    const std::string folder = slash == path_.npos ? "." : path_.substr(0, slash + 1);
    const detail::descriptor place(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (place.number() >= 0 && ::fsync(place.number()) != 0 && errno != EINVAL)
      detail::fail_by_system(path_, "is written, but its folder cannot be brought to disk", errno);
  }

 private:
  [[noreturn]] void give_up(const char* what) {
    const int code = errno;
    discard();
    detail::fail_by_system(path_, what, code);
  }
  void discard() {
    file_.close();
    if (std::exchange(ours_, false)) ::unlink(part_.c_str());
  }

  std::string path_, part_;
  detail::descriptor file_;
  bool ours_ = false;
};

}  // namespace streambp
