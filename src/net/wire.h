#pragma once
// One client's socket with the timers and flags that callbacks and the connection's coroutine share.

#include <chrono>
#include <cstdint>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tts::net {

// Used on `strand` only, except for the members that are const. Callbacks hold a shared_ptr, and through it the io_context, so
// that late ones from other threads always have somewhere to post to.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  // The socket's executor must be a strand of `context`.
  Wire(std::shared_ptr<boost::asio::io_context> context, boost::asio::ip::tcp::socket accepted);

  // Closes the socket unless arm() or disarm() is called within the time.
  void arm(std::chrono::milliseconds timeout);
  void disarm();
  bool timed_out() const noexcept { return timed_out_; }

  // Aborts every operation of the connection, whose coroutine then ends.
  void close();
  // Lets the present request finish; an idle connection closes at once.
  void finish();

  const std::shared_ptr<boost::asio::io_context> context;
  const boost::asio::any_io_executor strand;
  boost::asio::ip::tcp::socket socket;
  boost::asio::steady_timer wake;  // what the coroutine waits on for events; cancelled by whoever sets the flag it waits for
  bool busy = false;               // a request is being answered
  bool finishing = false;          // end after the present request

 private:
  boost::asio::steady_timer watchdog_;
  std::uint64_t armed_ = 0;  // which arm() a firing belongs to
  bool timed_out_ = false;
};

}  // namespace tts::net
