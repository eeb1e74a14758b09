// Named arrays in a file that other programs read, too: safetensors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "safetensors_header.hpp"

namespace streambp {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

inline constexpr std::uint64_t largest_tensor_header = 100'000'000;  // bytes, as others have it

// The type's name in a file; empty where there is none.
template <class T>
constexpr std::string_view tensor_type_of() {
  constexpr bool number = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  if constexpr (std::is_same_v<T, float>) return "F32";
  if constexpr (std::is_same_v<T, double>) return "F64";
  if constexpr (number && std::is_signed_v<T>)
    return sizeof(T) == 8 ? "I64" : sizeof(T) == 4 ? "I32" : sizeof(T) == 2 ? "I16" : "I8";
  if constexpr (number && std::is_unsigned_v<T>)
    return sizeof(T) == 8 ? "U64" : sizeof(T) == 4 ? "U32" : sizeof(T) == 2 ? "U16" : "U8";
  return "";
}

// Reads a file's header at once and its tensors when asked. Throws file_error for whatever is not
// as it should be.
class tensor_file {
 public:
  explicit tensor_file(const std::string& path) : file_(path) {
    if (file_.size() < 8)
      detail::fail(path, sentence("is no safetensors file: it has ", file_.size(), " bytes"));
    std::uint64_t length = 0;
    file_.read(0, &length, 8);
    const std::uint64_t most = std::min(file_.size() - 8, largest_tensor_header);
    if (length > most)
      detail::fail(path, sentence("is no safetensors file: a header of ", length,
                                  " bytes, of which ", most, " could be"));
    std::string text(std::size_t(length), ' ');
    file_.read(8, text.data(), text.size());
    data_ = 8 + length;
    header_ = read_tensor_header(path, text, file_.size() - data_);
    for (const tensor_entry& t : header_.tensors) by_name_.emplace(t.name, &t);
  }
  tensor_file(const tensor_file&) = delete;
  tensor_file& operator=(const tensor_file&) = delete;

  const std::string& path() const { return file_.path(); }
  const std::vector<tensor_entry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // nullptr where there is none of that name.
  const tensor_entry* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const tensor_entry& operator[](std::string_view name) const {
    if (const tensor_entry* t = find(name)) return *t;
    detail::fail(path(), sentence("holds no tensor '", shown(name), "'"));
  }

  // The numbers as they stand in the file, which must be of the type T and as many.
  template <class T>
  void read(const tensor_entry& t, std::span<T> into) const {
    static_assert(!tensor_type_of<T>().empty(), "no tensor in a file is of this type");
    if (t.type.name != tensor_type_of<T>())
      detail::fail(path(), sentence("tensor '", shown(t.name), "' is ", t.type.name, ", wanted ",
                                    tensor_type_of<T>()));
    if (t.bytes() != into.size_bytes())
      detail::fail(path(), sentence("tensor '", shown(t.name), "' has ", t.bytes() / sizeof(T),
                                    " entries, wanted ", into.size()));
    file_.read(data_ + t.first, into.data(), into.size_bytes());
  }

 private:
  input_file file_;
  tensor_header header_;
  std::map<std::string_view, const tensor_entry*> by_name_;
  std::uint64_t data_ = 0;  // where it begins
};

// An array to be written; its bytes stay with the caller.
struct tensor_source {
  std::string name;
  std::string_view type;
  std::vector<std::uint64_t> shape;
  const void* data = nullptr;
  std::uint64_t bytes = 0;
};

template <class T>
tensor_source tensor(std::string name, std::vector<std::uint64_t> shape, std::span<const T> data) {
  static_assert(!tensor_type_of<T>().empty(), "no tensor in a file is of this type");
  return {std::move(name), tensor_type_of<T>(), std::move(shape), data.data(), data.size_bytes()};
}

// Writes a file whole or not at all. Throws file_error, also when two tensors have one name or a
// shape is not that of its data.
inline void write_tensors(const std::string& path, std::vector<tensor_source> tensors,
                          const std::map<std::string, std::string>& metadata = {}) {
  // Wide types first: then every tensor is aligned.
  const auto width = [](const tensor_source& t) {
    const auto found = std::find_if(std::begin(tensor_types), std::end(tensor_types),
                                    [&](const tensor_type& type) { return type.name == t.type; });
    return found == std::end(tensor_types) ? 0 : found->bytes;
  };
  std::sort(tensors.begin(), tensors.end(), [&](const auto& a, const auto& b) {
    return width(a) != width(b) ? width(a) > width(b) : a.name < b.name;
  });

  std::string text = "{", comma;
  if (!metadata.empty()) {
    for (const auto& [key, value] : metadata) {
      text += (comma.empty() ? "\"__metadata__\":{" : ",") + json_string(key) + ":" +
              json_string(value);
      comma = ",";
    }
    text += "}";
  }
  std::uint64_t place = 0;
  for (const tensor_source& t : tensors) {
    text += sentence(comma, json_string(t.name), ":{\"dtype\":\"", t.type, "\",\"shape\":[");
    for (std::size_t i = 0; i < t.shape.size(); ++i) text += sentence(i ? "," : "", t.shape[i]);
    text += sentence("],\"data_offsets\":[", place, ",", place + t.bytes, "]}");
    place += t.bytes;
    comma = ",";
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > largest_tensor_header)
    detail::fail(path, sentence("its header would have ", text.size(), " bytes, at most ",
                                largest_tensor_header, " are read again"));
  read_tensor_header(path, text, place);

  whole_file file(path);
  const std::uint64_t length = text.size();
  file.write(&length, 8);
  file.write(text.data(), text.size());
  for (const tensor_source& t : tensors) file.write(t.data, std::size_t(t.bytes));
  file.commit();
}

}  // namespace streambp
