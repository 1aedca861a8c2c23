#pragma once
// One client's contexts and what it is to get from them, whichever socket it is on.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tts/stream/sessions.h"

#include "context.h"
#include "outbox.h"
#include "resume_token.h"

namespace tts::stream {

// Thread-safe. Logs call back through parts.post, so that nothing comes back into a session from inside a call.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // held_in_all: bytes that all sessions hold. All references must outlive it.
  Session(std::string id, std::string_view token, const StreamParts& parts, const StreamOptions& options, std::atomic<std::size_t>& held_in_all);
  ~Session();

  const std::string& id() const noexcept { return id_; }
  bool is_owner(std::string_view token) const { return token_.matches(token); }

  // Sockets. attach() takes the session from whoever has it and gives the new epoch; calls of older epochs do nothing.
  std::uint64_t attach(std::function<void()> wake);
  bool detach(std::uint64_t epoch);  // false = another socket has it
  bool has_socket() const;
  TimePoint detached_at() const;

  // The client has everything up to this frame. nullopt: it cannot.
  std::optional<Outbox::Rewind> rewind(std::uint32_t seq);
  std::string context_name(std::uint16_t id) const;  // empty = it is over
  // What arrived of the client's contexts, for whoever resumes: those that run, and the last ones that are over.
  std::vector<api::KnownContext> known_contexts() const;

  void receive(std::uint64_t epoch, api::StreamMessage message);
  // Something to be sent, if there is; else when to look again.
  Next next(std::uint64_t epoch, std::size_t waiting_in_kernel);

  void finish();                 // contexts speak what they were given; no others begin
  bool idle() const;             // no context runs and everything was sent
  void end();                    // contexts are cancelled, what was held is dropped
  std::size_t held_bytes() const;
  void drop_kept();              // memory is short
  void wake() const;

 private:
  void on_log(std::uint16_t id);

  void handle(const api::StreamStart& message);
  void handle(const api::StreamText& message);
  void handle(const api::StreamFlush& message);
  void handle(const api::StreamEnd& message);
  void handle(const api::StreamCancel& message);
  void handle(const api::StreamUpdate& message);
  void handle(const api::StreamAck& message);
  void handle(const api::StreamResume& message);

  Context* find(const std::string& name);  // says so when there is none
  void complain(std::string_view code, const Error& error, const std::string& context, bool ended);
  void say(std::string text, std::uint16_t context = 0);
  std::uint16_t free_id();
  void pump_all();
  void pump(std::uint16_t id);
  bool has_room();
  void listen(Context& context);
  void put(Context& context, const std::shared_ptr<const resume::Packet>& packet);
  void close(std::uint16_t id);  // its log has ended
  void remember(const Context& context);
  void adapt_bitrates(std::size_t waiting_in_kernel);
  Duration next_look() const;
  void account();

  const std::string id_;
  const TokenHash token_;
  const StreamParts& parts_;
  const StreamOptions& options_;
  std::atomic<std::size_t>& held_in_all_;

  mutable std::mutex mutex_;  // guards all below
  std::uint64_t epoch_ = 0;
  std::function<void()> wake_;  // empty = no socket
  TimePoint detached_at_{};
  bool finishing_ = false, ended_ = false;
  bool full_ = false;  // at the cap; until half is gone
  std::map<std::uint16_t, Context> contexts_;
  std::vector<api::KnownContext> over_;  // the last ones, oldest first
  std::uint16_t last_id_ = 0;
  Outbox outbox_;
  std::vector<Piece> pieces_;  // scratch of put()
  TimePoint adapted_at_{};
  std::size_t accounted_ = 0;
};

}  // namespace tts::stream
