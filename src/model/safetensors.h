#pragma once
// Safetensors files, read through a private mapping with every length checked before use.
// Format: 8-byte little-endian header length, JSON header {name: {dtype, shape, data_offsets}}, raw little-endian data.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tts::model {

inline constexpr std::size_t kMaxSafetensorsHeaderBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxSafetensorsTensors = 65536;
inline constexpr std::size_t kMaxTensorRank = 8;

using Shape = std::vector<std::uint64_t>;

struct TensorView {
  std::string dtype;  // as written in the file, one of the format's names
  Shape shape;
  std::span<const std::byte> bytes;  // not aligned; lives as long as the file object
};

// Immutable after construction; thread-safe. Keeps the file mapped, so the file must not shrink meanwhile. Tensors never overlap
// and never leave the file; gaps are allowed.
class SafetensorsFile {
 public:
  // Blocks. Throws std::runtime_error naming the file and listing every tensor whose entry is wrong.
  explicit SafetensorsFile(std::filesystem::path path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::map<std::string, TensorView, std::less<>>& tensors() const noexcept { return tensors_; }

  // Gives back the memory that reading a tensor took; reading it again takes it from the file anew.
  void release(const TensorView& tensor) const noexcept { release(tensor.bytes); }

  // Hashes exactly the bytes the tensors are read from. Throws std::runtime_error when they differ from lower-case hex `expected`.
  void require_sha256(std::string_view expected) const;

 private:
  void parse();
  static void release(std::span<const std::byte> bytes) noexcept;

  std::filesystem::path path_;
  std::span<const std::byte> mapping_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

// Takes the tensors one part of the model needs, widened to float32, and reports everything wrong with the file at once.
// Not thread-safe; `file` must outlive it.
class TensorReader {
 public:
  explicit TensorReader(const SafetensorsFile& file) : file_(file) {}

  bool contains(std::string_view name) const { return file_.tensors().contains(name); }

  // Row-major values of an F32, F16 or BF16 tensor, whose memory in the file is released. A tensor that is missing, of another shape or
  // dtype, or not finite is remembered for finish(), and zeros of the asked shape are returned so that the caller can go on.
  std::vector<float> get(std::string_view name, const Shape& shape);

  // Accepts tensors of the file that get() is never asked for: one name, or all.
  void ignore(std::string_view name) { taken_.emplace(name); }
  void ignore_rest() { ignore_rest_ = true; }

  // Throws std::runtime_error listing all problems, tensors that nobody asked for among them. Call once, after the last get().
  void finish() const;

 private:
  const SafetensorsFile& file_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> problems_;
  bool ignore_rest_ = false;
};

// Widens to float32. Precondition: dtype is F32, F16 or BF16.
std::vector<float> widen(const TensorView& tensor);

}  // namespace tts::model
