#pragma once
// The page at "/": the files of src/net/page, which the build puts into the program (cmake/EmbeddedPage.cmake).

#include <span>
#include <string_view>
#include <vector>

#include "router.h"

namespace tts::net {

struct PageFile {
  std::string_view path;  // of its URL
  std::string_view content_type;
  std::string_view etag;  // of the bytes, quoted
  std::string_view bytes;
};

std::span<const PageFile> page_files() noexcept;

// Whether a cached copy with this tag is still right for a client that sent `if_none_match` (a list of tags, weak ones too, or "*").
bool is_still_fresh(std::string_view if_none_match, std::string_view etag);

std::vector<Route> page_routes();

}  // namespace tts::net
