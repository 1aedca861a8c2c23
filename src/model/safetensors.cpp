#include "safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "tts/base/sha256.h"

namespace tts::model {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is little-endian and read in place");

constexpr std::size_t kHashPiece = std::size_t{8} << 20;  // of a file, in memory at once
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxListedProblems = 50;
constexpr std::size_t kMaxListedName = 200;

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 15> kDtypeBytes{{{"F64", 8},
                                                                                  {"F32", 4},
                                                                                  {"F16", 2},
                                                                                  {"BF16", 2},
                                                                                  {"F8_E4M3", 1},
                                                                                  {"F8_E5M2", 1},
                                                                                  {"I64", 8},
                                                                                  {"I32", 4},
                                                                                  {"I16", 2},
                                                                                  {"I8", 1},
                                                                                  {"U64", 8},
                                                                                  {"U32", 4},
                                                                                  {"U16", 2},
                                                                                  {"U8", 1},
                                                                                  {"BOOL", 1}}};

std::optional<std::uint64_t> dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypeBytes) {
    if (name == dtype) return bytes;
  }
  return std::nullopt;
}

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (const std::uint64_t dim : shape) text.append(text.size() > 1 ? "," : "").append(std::to_string(dim));
  return text + "]";
}

// Names come from the file: bounded so that a hostile one cannot fill the log.
std::string in_quotes(std::string_view name) {
  std::string text(1, '\'');
  text.append(name.substr(0, kMaxListedName)).push_back('\'');
  return text;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::vector<std::string>& problems) {
  std::string text = path.string() + ": ";
  for (std::size_t i = 0; i < std::min(problems.size(), kMaxListedProblems); ++i) text += (i > 0 ? "; " : "") + problems[i];
  if (problems.size() > kMaxListedProblems) text += "; and " + std::to_string(problems.size() - kMaxListedProblems) + " more";
  throw std::runtime_error(text);
}

[[noreturn]] void fail(const std::filesystem::path& path, std::string problem) { fail(path, std::vector<std::string>{std::move(problem)}); }

std::span<const std::byte> map_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hold us up, it is refused below
  if (fd < 0) fail(path, std::string("cannot open: ") + std::strerror(errno));
  struct stat status{};
  const bool usable = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= static_cast<off_t>(kLengthBytes);
  void* const address = usable ? ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (!usable) fail(path, "not a regular file of at least 8 bytes");
  if (address == MAP_FAILED) fail(path, std::string("cannot map: ") + std::strerror(errno));
  return {static_cast<const std::byte*>(address), static_cast<std::size_t>(status.st_size)};
}

struct HeaderEntry {
  std::optional<std::string> dtype;
  std::optional<Shape> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

// Accepts exactly the grammar of the header and nothing else. Nesting is bounded by the grammar, so hostile depth stops at once.
class HeaderParser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, HeaderEntry, std::less<>> entries;
  std::string error;

  bool null() override { return refuse("null is not allowed"); }
  bool boolean(bool) override { return refuse("a boolean is not allowed"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number is not allowed"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("sizes must be integers that fit 64 bits"); }
  bool binary(binary_t&) override { return refuse("binary is not allowed"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kArray) return refuse("a number stands in the wrong place");
    const std::size_t limit = field_ == "shape" ? kMaxTensorRank : 2;
    if (array_.size() == limit) return refuse("'" + field_ + "' has too many elements");
    array_.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadata) return true;
    if (state_ != State::kTensor || field_ != "dtype") return refuse("a string stands in the wrong place");
    entry_->dtype = value;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::kStart: state_ = State::kRoot; return true;
      case State::kName: state_ = entry_ == nullptr ? State::kMetadata : State::kTensor; return true;
      default: return refuse("an object stands in the wrong place");
    }
  }

  bool key(string_t& value) override {
    switch (state_) {
      case State::kRoot:
        name_ = value;
        if (!names_.insert(value).second) return refuse("the name occurs twice");
        if (names_.size() > kMaxSafetensorsTensors) return refuse("too many tensors");
        entry_ = value == "__metadata__" ? nullptr : &entries[value];
        state_ = State::kName;
        return true;
      case State::kMetadata: return true;
      case State::kTensor:
        field_ = value;
        if (field_ == "dtype") return !entry_->dtype || refuse("'dtype' occurs twice");
        if (field_ == "shape") return !entry_->shape || refuse("'shape' occurs twice");
        if (field_ == "data_offsets") return !entry_->offsets || refuse("'data_offsets' occurs twice");
        return refuse("unknown field");
      default: return refuse("a name stands in the wrong place");
    }
  }

  bool end_object() override {
    state_ = state_ == State::kRoot ? State::kEnd : State::kRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::kTensor || field_ == "dtype") return refuse("an array stands in the wrong place");
    array_.clear();
    state_ = State::kArray;
    return true;
  }

  bool end_array() override {
    (field_ == "shape" ? entry_->shape : entry_->offsets) = array_;
    state_ = State::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    error = "the header is not valid JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  enum class State { kStart, kRoot, kName, kMetadata, kTensor, kArray, kEnd };

  bool refuse(const std::string& why) {
    error = "header" + (name_.empty() ? std::string() : ", tensor " + in_quotes(name_)) + ": " + why;
    return false;
  }

  State state_ = State::kStart;
  std::set<std::string, std::less<>> names_;
  std::string name_, field_;
  HeaderEntry* entry_ = nullptr;  // into `entries`; null inside __metadata__
  std::vector<std::uint64_t> array_;
};

// The number of bytes a tensor takes; nullopt when it does not fit 64 bits.
std::optional<std::uint64_t> span_bytes(const Shape& shape, std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  for (const std::uint64_t dim : shape) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return bytes;
}

// Empty when the entry describes a tensor inside `data_bytes`.
std::string check_entry(const HeaderEntry& entry, std::uint64_t data_bytes) {
  if (!entry.dtype || !entry.shape || !entry.offsets) return "dtype, shape and data_offsets are all required";
  if (entry.offsets->size() != 2) return "data_offsets needs two numbers";
  const auto element_bytes = dtype_bytes(*entry.dtype);
  if (!element_bytes) return "unknown dtype";
  const std::uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
  if (begin > end || end > data_bytes) return "data_offsets leave the file";
  const auto bytes = span_bytes(*entry.shape, *element_bytes);
  if (!bytes || *bytes != end - begin) return "shape " + to_text(*entry.shape) + " does not match data_offsets";
  return {};
}

template <class Narrow>
std::vector<float> widen_from(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(Narrow));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Narrow narrow;
    std::memcpy(&narrow, bytes.data() + i * sizeof(Narrow), sizeof(Narrow));
    values[i] = static_cast<float>(narrow);
  }
  return values;
}

bool is_floating(std::string_view dtype) { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)), mapping_(map_file(path_)) {
  try {
    parse();
  } catch (...) {
    ::munmap(const_cast<std::byte*>(mapping_.data()), mapping_.size());
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { ::munmap(const_cast<std::byte*>(mapping_.data()), mapping_.size()); }

void SafetensorsFile::parse() {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, mapping_.data(), kLengthBytes);
  if (header_bytes > kMaxSafetensorsHeaderBytes || header_bytes > mapping_.size() - kLengthBytes) {
    fail(path_, "the header length " + std::to_string(header_bytes) + " exceeds the file or the limit");
  }
  const char* const text = reinterpret_cast<const char*>(mapping_.data()) + kLengthBytes;
  const std::string_view header(text, static_cast<std::size_t>(header_bytes));
  // The JSON library takes NUL for the end of its input, which would hide whatever follows.
  if (header.find('\0') != std::string_view::npos) fail(path_, "the header holds a NUL byte");
  HeaderParser parser;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &parser)) fail(path_, parser.error);

  const std::span<const std::byte> data = mapping_.subspan(kLengthBytes + header.size());
  std::vector<std::string> problems;
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::string>> spans;
  for (auto& [name, entry] : parser.entries) {
    if (std::string problem = check_entry(entry, data.size()); !problem.empty()) {
      problems.push_back("tensor " + in_quotes(name) + ": " + problem);
      continue;
    }
    const std::uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
    if (begin != end) spans.push_back({{begin, end}, name});
    tensors_.emplace(name, TensorView{std::move(*entry.dtype), std::move(*entry.shape), data.subspan(begin, end - begin)});
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first.first < spans[i - 1].first.second) {
      problems.push_back("tensors " + in_quotes(spans[i - 1].second) + " and " + in_quotes(spans[i].second) + " overlap");
    }
  }
  if (!problems.empty()) fail(path_, problems);
}

// Whole pages inside; best effort.
void SafetensorsFile::release(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void SafetensorsFile::require_sha256(std::string_view expected) const {
  Sha256 digest;
  for (std::size_t begin = 0; begin < mapping_.size(); begin += kHashPiece) {
    const std::span<const std::byte> piece = mapping_.subspan(begin, std::min(kHashPiece, mapping_.size() - begin));
    digest.update(piece);
    release(piece);
  }
  const std::string actual = digest.hex();
  if (actual != expected) fail(path_, "SHA-256 is " + actual + ", expected " + std::string(expected));
}

std::vector<float> TensorReader::get(std::string_view name, const Shape& shape) {
  const auto elements = span_bytes(shape, 1);
  assert(elements && *elements <= std::numeric_limits<std::size_t>::max() / sizeof(float));
  const auto refuse = [&](const std::string& why) {
    problems_.push_back("tensor " + in_quotes(name) + " " + why);
    return std::vector<float>(static_cast<std::size_t>(*elements));
  };
  taken_.emplace(name);
  const auto found = file_.tensors().find(name);
  if (found == file_.tensors().end()) return refuse("is missing");
  const TensorView& tensor = found->second;
  if (tensor.shape != shape) return refuse("has shape " + to_text(tensor.shape) + ", expected " + to_text(shape));
  if (!is_floating(tensor.dtype)) return refuse("has dtype " + tensor.dtype + ", expected F32, F16 or BF16");
  std::vector<float> values = widen(tensor);
  file_.release(tensor);
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) return refuse("holds NaN or infinity");
  return values;
}

void TensorReader::finish() const {
  std::vector<std::string> problems = problems_;
  if (!ignore_rest_) {
    for (const auto& [name, tensor] : file_.tensors()) {
      if (!taken_.contains(name)) problems.push_back("tensor " + in_quotes(name) + " is not part of this model");
    }
  }
  if (!problems.empty()) fail(file_.path(), problems);
}

std::vector<float> widen(const TensorView& tensor) {
  assert(is_floating(tensor.dtype));
  if (tensor.dtype == "F16") return widen_from<c10::Half>(tensor.bytes);
  if (tensor.dtype == "BF16") return widen_from<c10::BFloat16>(tensor.bytes);
  return widen_from<float>(tensor.bytes);
}

}  // namespace tts::model
