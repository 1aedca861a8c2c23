#include "session.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "tts/observability/request_id.h"

namespace tts::stream {
namespace {

constexpr Duration kBetweenBitrateLooks = std::chrono::milliseconds(100);
constexpr Duration kLeastLook = std::chrono::milliseconds(1);
constexpr std::size_t kRemembered = 16;  // contexts that are over
constexpr std::chrono::milliseconds kRetryWhileDraining{1'000};
// Of a context's log. What matters is the outbox: this is only enough to keep it full.
constexpr resume::StreamLogOptions kLog{.high_water_bytes = 64 * 1024, .low_water_bytes = 32 * 1024};

}  // namespace

Session::Session(std::string id, std::string_view token, const StreamParts& parts, const StreamOptions& options,
                 std::atomic<std::size_t>& held_in_all)
    : id_(std::move(id)), token_(token), parts_(parts), options_(options), held_in_all_(held_in_all) {}

Session::~Session() { end(); }

std::uint64_t Session::attach(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  if (const auto old = std::exchange(wake_, std::move(wake))) old();  // it will find that the session is another's now
  full_ = false;
  return ++epoch_;
}

bool Session::detach(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_ || !wake_) return false;
  wake_ = nullptr;
  detached_at_ = parts_.clock.now();
  full_ = false;
  pump_all();
  account();
  return true;
}

bool Session::has_socket() const {
  const std::lock_guard lock(mutex_);
  return wake_ != nullptr;
}

TimePoint Session::detached_at() const {
  const std::lock_guard lock(mutex_);
  return detached_at_;
}

std::optional<Outbox::Rewind> Session::rewind(std::uint32_t seq) {
  const std::lock_guard lock(mutex_);
  return outbox_.rewind(seq);
}

std::string Session::context_name(std::uint16_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(id);
  return found == contexts_.end() ? std::string() : found->second.name;
}

std::vector<api::KnownContext> Session::known_contexts() const {
  const std::lock_guard lock(mutex_);
  auto known = over_;
  for (const auto& [id, context] : contexts_) {
    known.push_back({.context = context.name, .id = id, .characters = context.synthesis->characters(), .ended = context.ended});
  }
  return known;
}

void Session::remember(const Context& context) {
  if (over_.size() == kRemembered) over_.erase(over_.begin());
  over_.push_back({.context = context.name, .id = context.id, .characters = context.synthesis->characters(), .ended = true});
}

void Session::receive(std::uint64_t epoch, api::StreamMessage message) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_ || ended_) return;
  std::visit([this](const auto& one) { handle(one); }, message);
  account();
}

void Session::handle(const api::StreamStart& message) {
  const auto refused = [&](std::string_view code, Error error) { complain(code, error, message.context, true); };
  if (finishing_) {
    return refused("unavailable", {ErrorCode::kUnavailable, "the server is stopping; connect again", {}, kRetryWhileDraining});
  }
  const auto same_name = [&](const auto& entry) { return entry.second.name == message.context; };
  if (std::any_of(contexts_.begin(), contexts_.end(), same_name)) {
    return complain("duplicate_context", {ErrorCode::kInvalidArgument, "a context of this name is running; end or cancel it first", "context", {}},
                    message.context, false);
  }
  if (contexts_.size() >= options_.max_contexts) {
    return refused("too_many_contexts", {ErrorCode::kTooLarge,
                                         "this server runs at most " + std::to_string(options_.max_contexts) +
                                             " contexts in a session (stream.max_contexts); end or cancel one first",
                                         "context",
                                         {}});
  }
  auto request = message.request;
  request.request_id = observability::new_request_id();
  request.log = kLog;
  request.adaptive_bitrate = message.adaptive_bitrate;
  auto started = parts_.start(request);
  if (!started.ok()) return refused({}, started.error());
  const std::uint16_t id = free_id();
  spdlog::debug("session {}: context {} is request {}", id_.substr(0, 8), id, request.request_id);
  auto& context = contexts_.try_emplace(id, id, message, std::move(started).value(), parts_.clock.now()).first->second;
  if (context.bitrate) context.synthesis->set_bitrate(context.bitrate->rate());
  say(api::started_message({.context = context.name,
                            .id = id,
                            .voice = request.voice,
                            .format = request.format,
                            .seed = context.synthesis->seed(),
                            .bitrate = context.bitrate ? context.bitrate->rate() : request.format.bitrate,
                            .pre_skip = context.synthesis->pre_skip()}));
  listen(context);
}

void Session::handle(const api::StreamText& message) {
  Context* const context = find(message.context);
  if (context == nullptr) return;
  if (const auto status = context->synthesis->append_text(message.text); !status.ok()) {
    return complain(status.error().code == ErrorCode::kTooLarge ? "text_too_long" : std::string_view(), status.error(), message.context, false);
  }
  if (message.flush) context->synthesis->flush_text();
}

void Session::handle(const api::StreamFlush& message) {
  if (Context* const context = find(message.context)) context->synthesis->flush_text();
}

void Session::handle(const api::StreamEnd& message) {
  Context* const context = find(message.context);
  if (context == nullptr) return;
  context->ended = true;
  context->synthesis->end_text();
}

void Session::handle(const api::StreamCancel& message) {
  Context* const context = find(message.context);
  if (context == nullptr) return;
  outbox_.drop_unsent(context->id);
  const std::uint64_t heard = message.samples ? std::min(*message.samples, context->sent_samples) : context->sent_samples;
  outbox_.push_next({.text = api::cancelled_message(context->name, context->spoken.characters(heard), context->sent_samples)});
  remember(*context);
  contexts_.erase(context->id);  // which frees its slot within one decode step
  parts_.metrics.context_ended("cancelled");
  if (wake_) wake_();
}

void Session::handle(const api::StreamUpdate& message) {
  Context* const context = find(message.context);
  if (context == nullptr) return;
  if (const auto status = context->synthesis->change(message.change); !status.ok()) complain({}, status.error(), message.context, false);
}

void Session::handle(const api::StreamAck& message) {
  outbox_.acknowledge(message.seq);
  if (!message.buffered_ms) return;
  const TimePoint now = parts_.clock.now();
  for (auto& [id, context] : contexts_) {
    if (message.context && *message.context != context.name) continue;
    context.synthesis->report_runs_dry_at(now + std::chrono::milliseconds(*message.buffered_ms) + outbox_.audio_after(message.seq, id));
  }
}

void Session::handle(const api::StreamResume&) {
  complain("invalid_message", {ErrorCode::kInvalidArgument, "resume must be the first message of a socket", "type", {}}, {}, false);
}

Context* Session::find(const std::string& name) {
  for (auto& [id, context] : contexts_) {
    if (context.name == name) return &context;
  }
  complain("unknown_context", {ErrorCode::kNotFound, "no context of this name is running; start it first", "context", {}}, name, true);
  return nullptr;
}

void Session::complain(std::string_view code, const Error& error, const std::string& context, bool ended) {
  say(api::stream_error_message({.code = code, .error = error, .context = context, .ended = ended}));
}

void Session::say(std::string text, std::uint16_t context) {
  outbox_.push(Message{.text = std::move(text), .context = context});
  if (wake_) wake_();
}

std::uint16_t Session::free_id() {
  do {
    ++last_id_;
  } while (last_id_ == 0 || contexts_.contains(last_id_));
  return last_id_;
}

// The log calls on whichever thread brings the packet, or in this very call.
void Session::listen(Context& context) {
  if (std::exchange(context.listening, true)) return;
  context.synthesis->log().notify_when(context.next_packet, [weak = weak_from_this(), post = parts_.post, id = context.id] {
    post([weak, id] {
      if (const auto self = weak.lock()) self->on_log(id);
    });
  });
}

void Session::on_log(std::uint16_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return;
  found->second.listening = false;
  pump(id);
  account();
}

void Session::pump_all() {
  for (auto at = contexts_.begin(); at != contexts_.end();) {
    const auto& context = (at++)->second;  // pump() may remove it
    if (!context.listening) pump(context.id);
  }
}

// Takes what is there of a context's audio, as far as there is room, and listens for more.
void Session::pump(std::uint16_t id) {
  Context& context = contexts_.at(id);
  auto& log = context.synthesis->log();
  for (;;) {
    if (!has_room() || parts_.clock.now() < context.may_go_on_at(options_.realtime_lead)) break;
    const bool ended = log.ended();  // before the look for a packet: one that comes in between is then seen
    const auto packet = log.next(context.next_packet);
    if (packet == nullptr) {
      if (ended) return close(id);
      return listen(context);
    }
    log.acknowledge(context.next_packet++);
    put(context, packet);
  }
  if (wake_) wake_();
}

bool Session::has_room() {
  const bool kept_only = wake_ == nullptr;
  const std::size_t most = kept_only ? options_.max_kept_bytes : options_.max_queued_bytes;
  const Duration most_audio = kept_only ? Duration(options_.resume) : Duration(options_.max_queued);
  const std::size_t bytes = outbox_.queued_bytes() + (kept_only ? outbox_.kept_bytes() : 0);
  const bool full = bytes >= most || outbox_.queued_audio() >= most_audio;
  const bool half = 2 * bytes >= most || 2 * outbox_.queued_audio() >= most_audio;
  full_ = full_ ? half : full;
  return !full_;
}

void Session::put(Context& context, const std::shared_ptr<const resume::Packet>& packet) {
  for (const auto& mark : packet->marks) {
    if (mark.kind == resume::Mark::Kind::kFlushed) {
      say(api::flushed_message(context.name, mark.end), context.id);
    } else {
      context.spoken.sentence(mark.begin, mark.end, mark.first_sample);
      if (context.timestamps) say(api::sentence_message(context.name, mark.index, mark.begin, mark.end, mark.first_sample), context.id);
    }
  }
  pieces_.clear();
  context.cutter.cut(packet, pieces_);
  for (auto& piece : pieces_) {
    const Duration audio = context.heard_as(piece.end_sample - piece.first_sample);
    outbox_.push(Frame{.context = context.id, .last = false, .piece = std::move(piece), .audio = audio});
  }
  context.spoken.made(context.cutter.end_sample(), false);
  if (wake_ && !pieces_.empty()) wake_();
}

void Session::close(std::uint16_t id) {
  auto node = contexts_.extract(id);
  Context& context = node.mapped();
  remember(context);
  if (const auto error = context.synthesis->log().error()) {
    parts_.metrics.context_ended("error");
    return complain({}, *error, context.name, true);
  }
  parts_.metrics.context_ended("done");
  const std::uint64_t samples = context.cutter.end_sample();
  if (samples > 0) {
    outbox_.push(Frame{.context = id, .last = true, .piece = {.payload = {}, .first_sample = samples, .end_sample = samples}, .audio = {}});
  }
  say(api::done_message(context.name, context.synthesis->characters(), samples), id);
}

Next Session::next(std::uint64_t epoch, std::size_t waiting_in_kernel) {
  const std::lock_guard lock(mutex_);
  Next next;
  if (epoch != epoch_) {
    next.kind = Next::Kind::kClose;
    next.code = CloseCode::kTakenOver;
    next.text = "another socket has taken this session over";
    return next;
  }
  pump_all();
  adapt_bitrates(waiting_in_kernel);
  const auto* const item = outbox_.take();
  if (item == nullptr) {
    next.look_again_in = next_look();
    account();
    return next;
  }
  if (const auto* const frame = item->frame()) {
    next.kind = Next::Kind::kFrame;
    api::write_frame_header({.last = frame->last, .context = frame->context, .seq = item->seq, .first_sample = frame->piece.first_sample},
                            next.header);
    next.packet = frame->piece.payload.packet;
    next.payload = frame->piece.payload.bytes();
    if (const auto found = contexts_.find(frame->context); found != contexts_.end()) {
      Context& context = found->second;
      context.sent_samples = std::max(context.sent_samples, frame->piece.end_sample);
      if (context.first_sent_at == TimePoint{}) context.first_sent_at = parts_.clock.now();
    }
  } else {
    next.kind = Next::Kind::kMessage;
    next.text = std::get<Message>(item->content).text;
  }
  const bool short_of_memory = options_.resume.count() == 0 || held_in_all_.load(std::memory_order_relaxed) > options_.max_kept_bytes_in_all;
  outbox_.keep_at_most(short_of_memory ? 0 : options_.max_kept_bytes);
  account();
  return next;
}

void Session::adapt_bitrates(std::size_t waiting_in_kernel) {
  const TimePoint now = parts_.clock.now();
  if (now - adapted_at_ < kBetweenBitrateLooks) return;
  adapted_at_ = now;
  for (auto& [id, context] : contexts_) {
    if (!context.bitrate || context.first_sent_at == TimePoint{}) continue;
    const std::chrono::duration<double> in_kernel(static_cast<double>(waiting_in_kernel) * 8 / context.bitrate->rate());
    const auto on_the_way = std::chrono::duration_cast<Duration>(in_kernel);
    const Duration left = context.first_sent_at + context.heard_as(context.sent_samples) - now - on_the_way;
    if (const auto rate = context.bitrate->observe({.waiting = outbox_.queued_audio() + on_the_way, .left = left}, now)) {
      spdlog::info("session {}: context {} goes on at {} bit/s", id_.substr(0, 8), id, *rate);
      context.synthesis->set_bitrate(*rate);
    }
  }
}

Duration Session::next_look() const {
  const TimePoint now = parts_.clock.now();
  Duration soonest = Duration::max();
  for (const auto& [id, context] : contexts_) {
    if (context.listening || !context.realtime) continue;
    soonest = std::min(soonest, std::max(kLeastLook, context.may_go_on_at(options_.realtime_lead) - now));
  }
  return soonest;
}

void Session::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finishing_, true)) return;
  for (auto& [id, context] : contexts_) context.synthesis->end_text();
}

bool Session::idle() const {
  const std::lock_guard lock(mutex_);
  return contexts_.empty() && outbox_.nothing_to_send();
}

void Session::end() {
  std::map<std::uint16_t, Context> contexts;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (std::size_t i = 0; i < contexts_.size(); ++i) parts_.metrics.context_ended("session_end");
  contexts.swap(contexts_);
  outbox_ = {};
  account();
}

std::size_t Session::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return accounted_;
}

void Session::drop_kept() {
  const std::lock_guard lock(mutex_);
  outbox_.keep_at_most(0);
  account();
}

void Session::wake() const {
  const std::lock_guard lock(mutex_);
  if (wake_) wake_();
}

void Session::account() {
  const std::size_t held = outbox_.queued_bytes() + outbox_.kept_bytes();
  held_in_all_.fetch_add(held - accounted_, std::memory_order_relaxed);  // modulo 2^64, so a smaller one subtracts
  parts_.metrics.add_session_bytes(static_cast<std::int64_t>(held) - static_cast<std::int64_t>(accounted_));
  accounted_ = held;
}

}  // namespace tts::stream
