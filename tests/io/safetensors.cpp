#include <streambp/io/safetensors.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "folder.hpp"

using namespace streambp;

namespace {

std::string bytes_of_header(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}
void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the reader says of a file of this header and data; empty if it takes it.
std::string verdict(const std::string& header, const std::string& data) {
  const std::string path = folder() + "/verdict";
  put(path, bytes_of_header(header, data));
  try {
    tensor_file file(path);
    return "";
  } catch (const file_error& problem) {
    return problem.what();
  }
}
void expect_refused(const std::string& header, const std::string& data, const std::string& why) {
  CAPTURE(header);
  const std::string said = verdict(header, data);
  CHECK_MESSAGE(said.find(why) != said.npos, said);
}

std::string f32(const std::string& name, const std::string& shape, int first, int last) {
  return sentence('"', name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":[)", first,
                  ",", last, "]}");
}

}  // namespace

TEST_CASE("a file written by hand from the format's description is read") {
  const float data[] = {1.5f, -2, 0.25f, 4};
  std::string bytes(reinterpret_cast<const char*>(data), sizeof data);
  const std::string path = folder() + "/by_hand";
  put(path, bytes_of_header(R"({ "__metadata__": {"format":"pt", "\u00e9\ud83d\ude00\n":"\"/\\"},
    "w":{"shape":[2,1],"data_offsets":[ 8,16 ],"dtype":"F32"},
    "none":{"dtype":"BOOL","shape":[0,7],"data_offsets":[8,8]},
    "one":{"data_offsets":[0,8],"dtype":"BF16","shape":[4]} }   )",
                            bytes));
  const tensor_file file(path);
  CHECK(file.metadata() == std::map<std::string, std::string>{
                               {"format", "pt"}, {"\xC3\xA9\xF0\x9F\x98\x80\n", "\"/\\"}});
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "one");
  CHECK(file["w"].shape == std::vector<std::uint64_t>{2, 1});
  CHECK(file["none"].bytes() == 0);
  CHECK(file.find("v") == nullptr);
  CHECK_THROWS_WITH_AS(file["v"], doctest::Contains("holds no tensor 'v'"), file_error);
  float w[2] = {};
  file.read<float>(file["w"], w);
  CHECK(w[0] == 0.25f);
  CHECK(w[1] == 4);
  float three[3];
  CHECK_THROWS_WITH_AS(file.read<float>(file["w"], three),
                       doctest::Contains("'w' has 2 entries, wanted 3"), file_error);
  double wide[1];
  CHECK_THROWS_WITH_AS(file.read<double>(file["w"], wide),
                       doctest::Contains("'w' is F32, wanted F64"), file_error);
  // A file that shrinks while it is open.
  REQUIRE(::truncate(path.c_str(), off_t(get(path).size() - 1)) == 0);
  CHECK_THROWS_WITH_AS(file.read<float>(file["w"], w), doctest::Contains("ends at byte"),
                       file_error);
}

TEST_CASE("what is written is read again, wide types first") {
  const std::string path = folder() + "/written";
  const std::vector<double> wide{1e300, -0.0, 3};
  const std::vector<float> narrow{1, 2, 3, 4, 5, 6};
  const std::vector<std::uint8_t> small{7, 8, 9};
  const std::vector<std::int64_t> whole{-1};
  const std::string name = "a \"b\" \\ \n \xC3\xA9";
  write_tensors(path,
                {tensor<std::uint8_t>("small", {3}, small), tensor<float>(name, {2, 3}, narrow),
                 tensor<double>("wide", {3, 1}, wide), tensor<std::int64_t>("whole", {}, whole)},
                {{"k", name}, {"l", ""}});
  const tensor_file file(path);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"k", name}, {"l", ""}});
  std::vector<double> w(3);
  std::vector<float> n(6);
  std::vector<std::uint8_t> s(3);
  std::vector<std::int64_t> i(1);
  file.read<double>(file["wide"], w);
  file.read<float>(file[name], n);
  file.read<std::uint8_t>(file["small"], s);
  file.read<std::int64_t>(file["whole"], i);
  CHECK(std::memcmp(w.data(), wide.data(), 24) == 0);
  CHECK(n == narrow);
  CHECK(s == small);
  CHECK(i == whole);
  CHECK(file[name].shape == std::vector<std::uint64_t>{2, 3});
  const std::string bytes = get(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  for (const tensor_entry& t : file.tensors()) CHECK(t.first % t.type.bytes == 0);
  // The other reader of JSON sees the same.
  const auto json = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(json.size() == 5);
  CHECK(json.at(name).at("shape") == nlohmann::json({2, 3}));

  write_tensors(path, {});
  CHECK(tensor_file(path).tensors().empty());
}

TEST_CASE("what the writer refuses") {
  const std::string path = folder() + "/refused";
  const std::vector<float> x{1, 2};
  const auto of = [&](const std::string& name, std::uint64_t rows) {
    return tensor<float>(name, {rows}, x);
  };
  CHECK_THROWS_WITH_AS(write_tensors(path, {of("x", 2), of("x", 2)}),
                       (path + ": is no safetensors file: two tensors are named 'x'").c_str(),
                       file_error);
  CHECK_THROWS_WITH_AS(write_tensors(path, {of("x", 3)}), doctest::Contains("shape takes 12"),
                       file_error);
  CHECK_THROWS_WITH_AS(write_tensors(path, {of("\xFF", 2)}), "safetensors: '?' is not UTF-8",
                       file_error);
  CHECK_THROWS_WITH_AS(write_tensors(folder() + "/no/file", {of("x", 2)}),
                       doctest::Contains("cannot be created: No such file"), file_error);
  const std::string taken = folder() + "/taken";
  REQUIRE(::mkdir(taken.c_str(), 0777) == 0);
  CHECK_THROWS_WITH_AS(write_tensors(taken, {of("x", 2)}),
                       doctest::Contains("taken: cannot be renamed: "), file_error);
  CHECK(::access((taken + ".part").c_str(), F_OK) != 0);
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("a header that would not be read again is not written") {
  const std::string path = folder() + "/header";
  CHECK_THROWS_WITH_AS(
      write_tensors(path, {}, {{"notes", std::string(largest_tensor_header, ' ')}}),
      (path + ": its header would have 100000032 bytes, at most 100000000 are read again").c_str(),
      file_error);
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("what is no file, or none of these") {
  CHECK_THROWS_WITH_AS(tensor_file(folder() + "/none"),
                       doctest::Contains("none: cannot be opened: No such file"), file_error);
  CHECK_THROWS_WITH_AS(tensor_file{folder()}, doctest::Contains("is no regular file"), file_error);
#ifdef __linux__
  const input_file memory("/proc/self/mem");  // nothing is mapped at 0
  char letter;
  CHECK_THROWS_WITH_AS(memory.read(0, &letter, 1),
                       "/proc/self/mem: cannot be read: Input/output error", file_error);
#endif
  const std::string pipe = folder() + "/pipe", path = folder() + "/short";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(tensor_file{pipe}, doctest::Contains("is no regular file"), file_error);
  put(path, "1234567");
  CHECK_THROWS_WITH_AS(tensor_file{path},
                       doctest::Contains("is no safetensors file: it has 7 bytes"), file_error);
  put(path, std::string(8, '\xFF') + "{}");
  CHECK_THROWS_WITH_AS(
      tensor_file{path},
      doctest::Contains(": is no safetensors file: a header of 18446744073709551615 "
                        "bytes, of which 2 could be"),
      file_error);
}

TEST_CASE("a file that shrinks while it is read is an error") {
  const std::string path = folder() + "/shrinks";
  std::vector<float> x(100, 1.f);
  write_tensors(path, {tensor<float>("x", {100}, x)});
  const tensor_file file(path);
  const auto bytes = get(path).size();
  REQUIRE(::truncate(path.c_str(), off_t(bytes - 40)) == 0);
  CHECK_THROWS_WITH_AS(file.read(file["x"], std::span(x)),
                       sentence(path, ": ends at byte ", bytes - 40, ", it had ", bytes,
                                "; did another program "
                                "write to it?")
                           .c_str(),
                       file_error);
}

TEST_CASE("each fault of a header has its sentence") {
  const std::string four(4, 'x'), eight(8, 'x');
  CHECK(verdict("{}", "") == "");
  CHECK(verdict("{" + f32("a", "[1]", 0, 4) + "," + f32("b", "[]", 4, 8) + "}", eight) == "");
  expect_refused("", "", "is no safetensors file: at byte 0 its header does not start with {");
  expect_refused(" {}", "", "does not start with {");
  expect_refused("{}", four, "is no safetensors file: its tensors end at 0 of 4 bytes");
  expect_refused("{}x", "", "goes on behind its closing }");
  expect_refused("{" + f32("a", "[1]", 0, 4), four, "lacks }");
  expect_refused("{" + f32("a", "[1]", 0, 4) + ",}", four, "lacks \"");
  expect_refused("{" + f32("a", "[1]", 0, 4) + "," + f32("a", "[1]", 4, 8) + "}", eight,
                 "two tensors are named 'a'");
  expect_refused("{" + f32("a", "[1]", 0, 4) + "," + f32("b", "[1]", 0, 4) + "}", four,
                 "'b' lies at 0, but what is before it ends at 4");
  expect_refused("{" + f32("a", "[1]", 4, 8) + "}", eight, "'a' lies at 4, but");
  expect_refused("{" + f32("a", "[1]", 0, 4) + "}", eight,
                 "end at 4 of 8 bytes; was it cut short?");
  expect_refused("{" + f32("a", "[2]", 0, 4) + "}", four, "lies from 0 to 4, its shape takes 8");
  expect_refused("{" + f32("a", "[1]", 4, 0) + "}", four,
                 "is no safetensors file: tensor 'a' lies from 4 to 0");
  expect_refused("{" + f32("a", "[4294967296,4294967296]", 0, 0) + "}", "",
                 "has numbers that pass 2^64");
  expect_refused("{" + f32("a", "[18446744073709551616]", 0, 0) + "}", "",
                 "has numbers that pass 2^64");
  for (const char* wrong : {"[-1]", "[1.0]", "[1e0]", "[01]", "[1,]", "[\"1\"]", "[[1]]", "[true]"})
    CHECK(verdict("{" + f32("a", wrong, 0, 4) + "}", four) != "");
  expect_refused("{" + f32("a", "[-1]", 0, 4) + "}", four, "has no whole number where one belongs");
  std::string deep = "[1";
  for (int i = 1; i < 32; ++i) deep += ",1";
  CHECK(verdict("{" + f32("a", deep + "]", 0, 4) + "}", four) == "");
  expect_refused("{" + f32("a", deep + ",1]", 0, 4) + "}", four,
                 "has a list of more than 32 numbers");
  expect_refused(R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,4]}})", four,
                 "'a' is of type 'F8'; known are F64, F32");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1]}})", four,
                 "lacks its dtype, shape or data_offsets");
  expect_refused(R"({"a":{"dtype":"F32","dtype":"F32"}})", four, "says one thing twice");
  expect_refused(R"({"a":{"kind":"F32"}})", four, "has a member 'kind'");
  expect_refused(R"({"a":{"data_offsets":[1]}})", four, "has one data offset, not two");
  expect_refused(R"({"a":{"data_offsets":[1,2,3]}})", four, "has a list of more than 2 numbers");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", "", "has metadata twice");
  expect_refused(R"({"__metadata__":{"a":"","a":""}})", "", "names one of its metadata twice");
  expect_refused(R"({"__metadata__":{"a":1}})", "", "lacks \"");
  for (const char* text : {"\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\n", "\xFE"})
    expect_refused(sentence(R"({"__metadata__":{"a":")", text, R"("}})"), "",
                   "has text that is not UTF-8");
  expect_refused(R"({"__metadata__":{"a":"\x"}})", "", "has an escape that JSON has not");
  expect_refused(R"({"__metadata__":{"a":"\u12g4"}})", "", "has an escape that JSON has not");
  for (const char* text : {R"(\ud800)", R"(\udc00)", R"(\ud800\u0041)"})
    expect_refused(sentence(R"({"__metadata__":{"a":")", text, R"("}})"), "",
                   "has half a surrogate pair");
  // Names in messages are short and can be printed.
  const std::string said =
      verdict("{" + f32("\xC3\xA9" + std::string(100, 'n'), "[2]", 0, 4) + "}", four);
  CHECK_MESSAGE(said.find("'??" + std::string(58, 'n') + "...'") != said.npos, said);
}

// Changed bytes of valid headers: nothing but a file_error comes out, what is taken is JSON for
// another reader, too, and its tensors tile the data.
TEST_CASE("no header does harm") {
  const std::string seeds[] = {
      "{" + f32("a", "[1,2]", 0, 8) + "," + f32("b", "[]", 8, 12) + "}",
      R"({"__metadata__":{"format":"pt","\u00e9\ud83d\ude00":"\"\\\n"},"x":{"shape":[0,3],)"
      R"("dtype":"U8","data_offsets":[0,0]},"y":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})",
      R"( {"z":{"dtype":"F16","shape":[2,1,3],"data_offsets":[0,12]}}  )"};
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\"",
                                "\\u",
                                "0",
                                "1",
                                "8",
                                "12",
                                "-1",
                                "1e3",
                                "\\",
                                "\xC3",
                                "F32",
                                "\"\"",
                                "__metadata__",
                                "shape",
                                "null",
                                "true",
                                " ",
                                "\n",
                                "18446744073709551615",
                                "\xED\xA0\x80",
                                "\\ud83d",
                                "[0,8]"};
  std::uint64_t state = std::getenv("STREAMBP_FUZZ_SEED")
                            ? std::strtoull(std::getenv("STREAMBP_FUZZ_SEED"), nullptr, 10)
                            : 1;
  const int rounds =
      std::getenv("STREAMBP_FUZZ_ROUNDS") ? std::atoi(std::getenv("STREAMBP_FUZZ_ROUNDS")) : 40000;
  const auto any = [&](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return std::size_t((state >> 33) % below);
  };
  int taken = 0, changed = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string& seed = seeds[any(std::size(seeds))];
    std::string text = seed;
    for (std::size_t edits = 1 + any(3); edits > 0; --edits) {
      const std::size_t at = any(text.size() + 1), rest = text.size() - at;
      const std::size_t some = std::min(rest, any(4));
      switch (any(5)) {
        case 0:
          text.insert(at, pieces[any(std::size(pieces))]);
          break;
        case 1:
          text.erase(at, some);
          break;
        case 2:
          text.replace(at, some, pieces[any(std::size(pieces))]);
          break;
        case 3:
          text.insert(at, text.substr(any(text.size() + 1), any(30)));
          break;
        default:
          if (rest > 0) text[at] = char(any(256));
      }
    }
    const std::uint64_t data = any(4) ? 12 : 8;
    try {
      const tensor_header header = read_tensor_header("fuzz", text, data);
      ++taken;
      changed += text != seed;
      REQUIRE_MESSAGE(nlohmann::json::accept(text), text);
      const auto json = nlohmann::json::parse(text);
      std::uint64_t end = 0;
      for (const tensor_entry& t : header.tensors) {
        REQUIRE(json.at(t.name).at("dtype") == t.type.name);
        REQUIRE(json.at(t.name).at("shape") == t.shape);
        REQUIRE(t.first == end);
        end = t.last;
      }
      REQUIRE(end == data);
      for (const auto& [key, value] : header.metadata)
        REQUIRE(json.at("__metadata__").at(key) == value);
    } catch (const file_error&) {
    }
  }
  CHECK(changed > rounds / 1000);
  CHECK(taken < rounds / 2);
}

TEST_CASE("a full disk leaves the file of before") {
  const std::string path = folder() + "/full";
  const std::vector<float> before{1, 2, 3}, after(100000, 4.f);
  write_tensors(path, {tensor<float>("x", {3}, before)});
  const std::string old = get(path);
  rlimit was{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t most : {rlim_t(0), rlim_t(100), rlim_t(4096)}) {
    const rlimit tight{most, was.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
    std::string said;
    try {
      write_tensors(path, {tensor<float>("x", {100000}, after)});
    } catch (const file_error& problem) {
      said = problem.what();
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK(said == path + ": cannot be written, and the file of before is kept: File too large");
    CHECK(get(path) == old);
    CHECK(::access((path + ".part").c_str(), F_OK) != 0);
  }
  std::signal(SIGXFSZ, handler);
  // What a killed process left behind is in nobody's way, and longer than what comes.
  put(path + ".part", std::string(1000, '?'));
  write_tensors(path, {tensor<float>("y", {3}, before)});
  CHECK(tensor_file(path)["y"].bytes() == 12);
  CHECK(::access((path + ".part").c_str(), F_OK) != 0);
  if (::access("/dev/full", W_OK) == 0) {  // a device is not written over
    REQUIRE(::symlink("/dev/full", (path + ".part").c_str()) == 0);
    CHECK_THROWS_AS(write_tensors(path, {}), file_error);
    ::unlink((path + ".part").c_str());
  }
}

#ifdef __linux__
// In a process of its own, which may mount a disk of 64 KiB where the system lets users do so.
TEST_CASE("a disk without room leaves the file of before, and what comes later fits again") {
  enum outcome : int { right, wrong_sentence, wrong_file, wrong_rest, no_disk };
  const std::string place = folder() + "/disk";
  REQUIRE(::mkdir(place.c_str(), 0777) == 0);
  const auto fill = [&]() -> outcome {
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return no_disk;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    if (::mount("none", place.c_str(), "tmpfs", 0, "size=64k") != 0) return no_disk;
    const std::string path = place + "/state";
    const std::vector<float> before{1, 2, 3}, after(100000, 4.f);
    write_tensors(path, {tensor<float>("x", {3}, before)});
    const std::string old = get(path);
    std::string said;
    try {
      write_tensors(path, {tensor<float>("x", {100000}, after)});
    } catch (const file_error& problem) {
      said = problem.what();
    }
    if (said !=
        path + ": cannot be written, and the file of before is kept: No space left on device")
      return wrong_sentence;
    if (get(path) != old) return wrong_file;
    if (::access((path + ".part").c_str(), F_OK) == 0) return wrong_rest;
    write_tensors(path, {tensor<float>("x", {10000}, std::span(after).first(10000))});
    return tensor_file(path)["x"].bytes() == 40000 ? right : wrong_rest;
  };
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    outcome found = wrong_rest;
    try {
      found = fill();
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "%s\n", problem.what());
    }
    ::_exit(found);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_disk)
    MESSAGE("this system mounts no disk for a user: nothing was tried");
  else
    CHECK(WEXITSTATUS(status) == right);
}
#endif
