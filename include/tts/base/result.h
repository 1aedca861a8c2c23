#pragma once
// Errors of the request path as values. Constructors and start-up code throw instead; broken invariants assert.

#include <cassert>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tts {

enum class ErrorCode {
  kInvalidArgument,   // the caller's input is wrong; repeating it will not help
  kTooLarge,          // a named limit was exceeded
  kNotFound,          // an id (voice, model, route) that does not exist
  kUnsupported,       // understood, but not offered by this model or build
  kQueueFull,         // try again after `retry_after`
  kUnavailable,       // draining or not ready; try another replica
  kDeadlineExceeded,  // the request's own deadline passed
  kCancelled,         // the client left or asked to stop
  kEngineFailure,     // the model failed on this utterance
  kInternal,          // a defect of ours; the message carries an id that is in the log
};

std::string_view to_string(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;                       // for the user: what is wrong and what to do next
  std::string param{};                       // name of the offending field; empty when none
  std::chrono::milliseconds retry_after{0};  // 0 = no advice
};

// Either a T or an Error. Accessing the side that is not held asserts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & { assert(ok()); return *std::get_if<0>(&held_); }
  const T& value() const& { assert(ok()); return *std::get_if<0>(&held_); }
  T&& value() && { assert(ok()); return std::move(*std::get_if<0>(&held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { assert(!ok()); return *std::get_if<1>(&held_); }
  Error&& error() && { assert(!ok()); return std::move(*std::get_if<1>(&held_)); }

 private:
  std::variant<T, Error> held_;
};

// Success without a value.
struct Ok {};
using Status = Result<Ok>;

}  // namespace tts
