#include "tensor_backend.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

namespace tts::model {
namespace {

constexpr const char* kLibrary = "libtts_tensors.so";

std::atomic<const TensorBackend*> loaded{nullptr};

std::filesystem::path beside_the_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path() / kLibrary;
}

}  // namespace

bool built_for_gpus() noexcept {
#ifdef TTS_WITH_CUDA
  return true;
#else
  return false;
#endif
}

bool has_gpu_driver() noexcept {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  ::dlclose(driver);
  return true;
}

const TensorBackend& load_tensor_backend(const std::filesystem::path& path) {
  const std::string what = "the part that runs on libtorch";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw std::runtime_error(what + " is missing: " + path.string() +
                             " belongs beside the program; copy it there too, build the target tts_tensors, or set device to cpu");
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    throw std::runtime_error(what + " cannot be loaded: " + ::dlerror() +
                             "; libraries of libtorch are looked for where they were when it was built, and in LD_LIBRARY_PATH");
  }
  const auto entry = reinterpret_cast<const TensorBackend* (*)()>(::dlsym(library, TTS_TENSOR_BACKEND_ENTRY));
  if (entry == nullptr) throw std::runtime_error(what + " is of another build than the program: " + path.string() + "; take both from one");
  return *entry();
}

const TensorBackend& tensor_backend() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (loaded.load() == nullptr) loaded.store(&load_tensor_backend(beside_the_program()));
  return *loaded.load();
}

const TensorBackend* loaded_tensor_backend() noexcept { return loaded.load(); }

}  // namespace tts::model
