#include "tts/api/speech_api.h"

#include <map>
#include <utility>

#include "dialects.h"
#include "documents.h"
#include "field_table.h"
#include "strict_json.h"

namespace tts::api {

struct SpeechApi::Impl {
  explicit Impl(Catalog c)
      : catalog(std::move(c)),
        native(native_fields(catalog)),
        openai(openai_fields(catalog, resolve_voice_aliases(catalog))),
        voices(voices_document(catalog)),
        models(models_document(catalog)),
        openapi(openapi_document(catalog, native, openai)) {}

  enum class UnknownFields { kReject, kWarn };

  Result<SpeechCall> parse(std::string_view body, const std::vector<Field<SpeechCall>>& table, UnknownFields unknown,
                           audio::Container container) const {
    auto document = parse_strict_json_object(body);
    if (!document) return std::move(document).error();
    auto call = default_call(catalog, container);
    auto* const ignored = unknown == UnknownFields::kWarn ? &call.warnings : nullptr;
    if (auto status = apply_fields(table, *document, ignored, call); !status) return std::move(status).error();
    if (auto status = check_call(call, catalog); !status) return std::move(status).error();
    return call;
  }

  const Catalog catalog;
  const std::vector<Field<SpeechCall>> native, openai;
  const std::string voices, models, openapi;
};

SpeechApi::SpeechApi(Catalog catalog) : impl_(std::make_unique<const Impl>(std::move(catalog))) {}
SpeechApi::~SpeechApi() = default;

Result<SpeechCall> SpeechApi::parse_native(std::string_view body) const {
  return impl_->parse(body, impl_->native, Impl::UnknownFields::kReject, audio::Container::kWav);
}
Result<SpeechCall> SpeechApi::parse_openai(std::string_view body) const {
  return impl_->parse(body, impl_->openai, Impl::UnknownFields::kWarn, audio::Container::kMp3);
}

const std::string& SpeechApi::voices_json() const noexcept { return impl_->voices; }
const std::string& SpeechApi::models_json() const noexcept { return impl_->models; }
const std::string& SpeechApi::openapi_json() const noexcept { return impl_->openapi; }
const Catalog& SpeechApi::catalog() const noexcept { return impl_->catalog; }

}  // namespace tts::api
