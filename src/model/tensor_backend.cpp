#include "tensor_backend.h"

#include <atomic>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

namespace tts::model {
namespace {

constexpr const char* kLibrary = "libtts_tensors.so";
constexpr const char* kEntry = "tts_tensor_backend";

std::atomic<const TensorBackend*> loaded{nullptr};

const TensorBackend& load() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path path = program.parent_path() / kLibrary;
  if (error || !std::filesystem::exists(path, error)) {
    throw std::runtime_error("the part that runs on libtorch is missing: " + path.string() + " belongs beside the program");
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::runtime_error(std::string("cannot load the part that runs on libtorch: ") + ::dlerror());
  const auto entry = reinterpret_cast<const TensorBackend* (*)()>(::dlsym(library, kEntry));
  if (entry == nullptr) throw std::runtime_error(path.string() + " is not of this program");
  return *entry();
}

}  // namespace

bool built_for_gpus() noexcept {
#ifdef TTS_WITH_CUDA
  return true;
#else
  return false;
#endif
}

const TensorBackend& tensor_backend() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (loaded.load() == nullptr) loaded.store(&load());
  return *loaded.load();
}

const TensorBackend* loaded_tensor_backend() noexcept { return loaded.load(); }

}  // namespace tts::model
