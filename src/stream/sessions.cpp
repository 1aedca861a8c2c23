#include "tts/stream/sessions.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>

#include <spdlog/spdlog.h>

#include "resume_token.h"
#include "session.h"

namespace tts::stream {
namespace {

constexpr std::size_t kRemembered = 4096;  // sessions that are over, so that a late client hears "expired" and not "unknown"
constexpr std::chrono::milliseconds kRetryAddress{5'000};

double random_share() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>()(random);
}

}  // namespace

class Sessions::Impl {
 public:
  Impl(StreamParts given_parts, const StreamOptions& given_options) : parts(std::move(given_parts)), options(given_options) {}

  ~Impl() {
    for (const auto& [id, session] : sessions_) session->end();
  }

  // The new session and its token.
  std::pair<std::shared_ptr<Session>, std::string> make() {
    std::string token = random_id();
    auto session = std::make_shared<Session>(random_id(), token, parts, options, held_);
    const std::lock_guard lock(mutex_);
    sessions_.emplace(session->id(), session);
    return {std::move(session), std::move(token)};
  }

  enum class Outcome { kFound, kUnknown, kExpired };

  Outcome find(const std::string& id, const std::string& token, std::shared_ptr<Session>& session) const {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return over_.contains(id) ? Outcome::kExpired : Outcome::kUnknown;
    if (!found->second->is_owner(token)) return Outcome::kUnknown;
    session = found->second;
    return Outcome::kFound;
  }

  void forget(const std::shared_ptr<Session>& session, bool expired) {
    {
      const std::lock_guard lock(mutex_);
      if (sessions_.erase(session->id()) == 0) return;
      if (expired && over_.insert(session->id()).second) order_of_over_.push_back(session->id());
      for (; order_of_over_.size() > kRemembered; order_of_over_.pop_front()) over_.erase(order_of_over_.front());
    }
    session->end();
  }

  void sweep() {
    const TimePoint now = parts.clock.now();
    std::vector<std::pair<TimePoint, std::shared_ptr<Session>>> waiting;
    for (const auto& session : all()) {
      if (!session->has_socket()) waiting.emplace_back(session->detached_at(), session);
    }
    std::sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t left = waiting.size();
    for (const auto& [since, session] : waiting) {
      const bool too_many = left > options.max_waiting_sessions || held_.load(std::memory_order_relaxed) > options.max_kept_bytes_in_all;
      if (now - since < options.resume && !too_many) break;
      if (session->has_socket()) continue;  // resumed meanwhile
      spdlog::debug("session {} is over: {}", session->id().substr(0, 8), too_many ? "too many wait" : "nobody came back");
      parts.metrics.session_resumed(too_many ? "evicted" : "expired");
      forget(session, true);
      --left;
    }
    if (held_.load(std::memory_order_relaxed) > options.max_kept_bytes_in_all) {
      for (const auto& session : all()) session->drop_kept();
    }
    parts.metrics.set_sessions(attached(), left);
  }

  void drain(TimePoint deadline) {
    {
      const std::lock_guard lock(mutex_);
      if (draining_) return;
      const TimePoint now = parts.clock.now();
      drain_deadline_ = deadline;
      drain_begins_ = now;
      drain_spread_ = std::min<Duration>(options.drain_spread, std::max(Duration(0), (deadline - now) / 2));
      draining_ = true;
    }
    for (const auto& session : all()) {
      session->finish();
      session->wake();
    }
  }

  bool draining() const noexcept { return draining_; }
  // Of a socket whose place in the closing window is `share`.
  TimePoint closes_at(double share) const {
    return drain_begins_ + std::chrono::duration_cast<Duration>(share * std::chrono::duration<double>(drain_spread_));
  }
  std::chrono::milliseconds until_deadline() const {
    return std::max(std::chrono::milliseconds(0), std::chrono::duration_cast<std::chrono::milliseconds>(drain_deadline_ - parts.clock.now()));
  }

  bool enter(const std::string& address) {
    const std::lock_guard lock(mutex_);
    auto& count = addresses_[address];
    if (count >= options.max_sockets_per_address) return false;
    ++count;
    ++attached_;
    return true;
  }

  void leave(const std::string& address) {
    const std::lock_guard lock(mutex_);
    --attached_;
    const auto found = addresses_.find(address);
    if (--found->second == 0) addresses_.erase(found);
  }

  std::size_t attached() const {
    const std::lock_guard lock(mutex_);
    return attached_;
  }

  std::vector<std::shared_ptr<Session>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Session>> sessions;
    sessions.reserve(sessions_.size());
    for (const auto& [id, session] : sessions_) sessions.push_back(session);
    return sessions;
  }

  const StreamParts parts;
  const StreamOptions options;

 private:
  std::atomic<std::size_t> held_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Session>> sessions_;
  std::unordered_map<std::string, std::uint32_t> addresses_;  // sockets
  std::size_t attached_ = 0;
  std::set<std::string, std::less<>> over_;
  std::deque<std::string> order_of_over_;
  TimePoint drain_deadline_{}, drain_begins_{};  // set before draining_
  Duration drain_spread_{0};
  std::atomic<bool> draining_{false};
};

// ---------------------------------------------------------------- sessions

Sessions::Sessions(StreamParts parts, const StreamOptions& options) : impl_(std::make_unique<Impl>(std::move(parts), options)) {}
Sessions::~Sessions() = default;

Result<std::unique_ptr<Attachment>> Sessions::open(std::string address, std::function<void()> wake) {
  if (impl_->draining()) return Error{ErrorCode::kUnavailable, "the server is shutting down", {}, {}};
  if (!impl_->enter(address)) {
    impl_->parts.metrics.rejected("too_many_connections");
    return Error{ErrorCode::kQueueFull,
                 "this server takes at most " + std::to_string(impl_->options.max_sockets_per_address) +
                     " sockets from one address (stream.max_sockets_per_address)",
                 {},
                 kRetryAddress};
  }
  std::unique_ptr<Attachment> attachment(new Attachment(*this, std::move(address), std::move(wake)));
  auto [session, token] = impl_->make();
  attachment->welcome(std::move(session), std::move(token));
  return attachment;
}

void Sessions::sweep() { impl_->sweep(); }
void Sessions::drain(TimePoint deadline) { impl_->drain(deadline); }
std::size_t Sessions::attached() const { return impl_->attached(); }

std::size_t Sessions::waiting() const {
  const auto all = impl_->all();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& session) { return !session->has_socket(); }));
}

// ---------------------------------------------------------------- attachment

Attachment::Attachment(Sessions& sessions, std::string address, std::function<void()> wake)
    : sessions_(sessions), address_(std::move(address)), wake_(std::move(wake)), spread_(random_share()) {}

Attachment::~Attachment() {
  auto& impl = *sessions_.impl_;
  if (session_ != nullptr && session_->detach(epoch_) && impl.options.resume.count() == 0) impl.forget(session_, true);
  impl.leave(address_);
}

void Attachment::welcome(std::shared_ptr<Session> session, std::string token) {
  const auto& impl = *sessions_.impl_;
  session_ = std::move(session);
  epoch_ = session_->attach(wake_);
  direct_.push_back(api::ready_message({.session = session_->id(),
                                        .resume_token = std::move(token),
                                        .epoch = epoch_,
                                        .server = "chattts-server/" + impl.parts.catalog.version,
                                        .max_contexts = impl.options.max_contexts,
                                        .max_text_chars = impl.parts.catalog.max_text_chars,
                                        .resume_ms = static_cast<std::uint64_t>(impl.options.resume.count())}));
}

void Attachment::receive(api::StreamMessage message) {
  const bool first = std::exchange(first_message_, false);
  if (const auto* const again = std::get_if<api::StreamResume>(&message); again != nullptr && first) return resume(*again);
  session_->receive(epoch_, std::move(message));
}

void Attachment::refuse(const Error& error, const std::string& context) {
  first_message_ = false;
  ++wrong_messages_;
  direct_.push_back(api::stream_error_message({.code = api::wrong_message_code(error), .error = error, .context = context, .ended = false}));
  wake_();
}

void Attachment::resume(const api::StreamResume& message) {
  auto& impl = *sessions_.impl_;
  std::shared_ptr<Session> found;
  const auto outcome = impl.find(message.session, message.token, found);
  if (outcome != Sessions::Impl::Outcome::kFound) {
    const bool expired = outcome == Sessions::Impl::Outcome::kExpired;
    impl.parts.metrics.session_resumed(expired ? "resume_expired" : "resume_unknown");
    direct_.push_back(expired ? api::resume_expired_message() : api::resume_unknown_message());
    return wake_();
  }
  // The old socket first, so that nothing is sent there after the place to go on from was found.
  const std::uint64_t epoch = found->attach(wake_);
  const auto rewind = found->rewind(message.seq);
  const auto provisional = std::exchange(session_, std::move(found));
  epoch_ = epoch;
  impl.forget(provisional, false);
  direct_.clear();
  direct_sent_ = 0;
  if (!rewind) {
    impl.parts.metrics.session_resumed("resume_unknown");
    refuse({ErrorCode::kInvalidArgument, "no frame of this number was ever sent", "seq", {}}, {});
    return;
  }
  impl.parts.metrics.session_resumed(rewind->gap ? "resume_gap" : "resumed");
  spdlog::info("session {} goes on from frame {}{}", session_->id().substr(0, 8), rewind->from, rewind->gap ? ", after a gap" : "");
  if (rewind->gap) {
    direct_.push_back(api::resume_gap_message({.session = session_->id(),
                                               .epoch = epoch_,
                                               .from = rewind->from,
                                               .contexts = session_->known_contexts(),
                                               .context = session_->context_name(rewind->context),
                                               .first_sample = rewind->first_sample}));
  } else {
    direct_.push_back(api::resumed_message({.session = session_->id(), .epoch = epoch_, .from = rewind->from, .contexts = session_->known_contexts()}));
  }
  wake_();
}

Next Attachment::next(std::size_t waiting_in_kernel) {
  const auto& impl = *sessions_.impl_;
  if (impl.draining() && !std::exchange(told_draining_, true)) {
    direct_.push_back(api::draining_message(static_cast<std::uint64_t>(impl.until_deadline().count())));
  }
  Next next;
  if (direct_sent_ < direct_.size()) {
    next.kind = Next::Kind::kMessage;
    next.text = std::move(direct_[direct_sent_++]);
    if (direct_sent_ == direct_.size()) {
      direct_ = {};
      direct_sent_ = 0;
    }
    return next;
  }
  if (wrong_messages_ > impl.options.max_wrong_messages) {
    next.kind = Next::Kind::kClose;
    next.code = CloseCode::kTooManyErrors;
    next.text = "too many messages could not be understood";
    return next;
  }
  next = session_->next(epoch_, waiting_in_kernel);
  if (next.kind == Next::Kind::kNothing && impl.draining() && session_->idle()) {
    const Duration until_close = impl.closes_at(spread_) - impl.parts.clock.now();
    if (until_close <= Duration(0)) {
      next.kind = Next::Kind::kClose;
      next.code = CloseCode::kRestart;
      next.text = "the server restarts";
    } else {
      next.look_again_in = std::min(next.look_again_in, until_close);
    }
  }
  return next;
}

void Attachment::closed_by_client() {
  if (session_->detach(epoch_)) sessions_.impl_->forget(session_, false);
}

}  // namespace tts::stream
