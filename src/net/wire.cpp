#include "wire.h"

#include <utility>

namespace tts::net {

Wire::Wire(std::shared_ptr<boost::asio::io_context> io, boost::asio::ip::tcp::socket accepted)
    : context(std::move(io)), strand(accepted.get_executor()), socket(std::move(accepted)), wake(strand), watchdog_(strand) {}

void Wire::arm(std::chrono::milliseconds timeout) {
  watchdog_.expires_after(timeout);
  watchdog_.async_wait([self = shared_from_this(), armed = ++armed_](boost::system::error_code error) {
    if (error || armed != self->armed_) return;
    self->timed_out_ = true;
    self->close();
  });
}

void Wire::disarm() {
  ++armed_;
  watchdog_.cancel();
}

void Wire::close() {
  boost::system::error_code ignored;
  socket.close(ignored);
  disarm();
  wake.cancel();
}

void Wire::finish() {
  finishing = true;
  if (!busy) close();
}

}  // namespace tts::net
