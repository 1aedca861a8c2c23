// The page's files as they are served. What the page does is tested in a browser (tests/integration/test_page.py).

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "page_routes.h"
#include "server_fixture.h"

namespace tts::net {
namespace {

using testing::HasSubstr;
using testing::Not;

const PageFile* find_file(std::string_view path) {
  const auto files = page_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

TEST(PageFiles, TagsAreComparedAsListsOfWeakOnes) {
  EXPECT_TRUE(is_still_fresh(R"("abc")", R"("abc")"));
  EXPECT_TRUE(is_still_fresh(R"(W/"abc")", R"("abc")"));
  EXPECT_TRUE(is_still_fresh(R"("x", W/"y" ,  "abc")", R"("abc")"));
  EXPECT_TRUE(is_still_fresh("*", R"("abc")"));
  EXPECT_FALSE(is_still_fresh("", R"("abc")"));
  EXPECT_FALSE(is_still_fresh(" , ,", R"("abc")"));
  EXPECT_FALSE(is_still_fresh("abc", R"("abc")"));
  EXPECT_FALSE(is_still_fresh(R"("abcd", "ab")", R"("abc")"));
}

TEST(PageFiles, HoldTheBytesOfTheSources) {
  ASSERT_GT(page_files().size(), 5U);
  for (const auto& file : page_files()) {
    const std::string name = file.path == "/" ? "index.html" : std::string(file.path.substr(std::string_view("/page/").size()));
    std::ifstream source(std::string(TTS_SOURCE_DIR) + "/src/net/page/" + name, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(source)), std::istreambuf_iterator<char>());
    EXPECT_EQ(file.bytes, bytes) << name;
    EXPECT_TRUE(std::regex_match(std::string(file.etag), std::regex("\"[0-9a-f]{20}\""))) << file.etag;
  }
}

// What the page names is there, and it names nothing elsewhere.
TEST(PageFiles, ReferToEachOtherAndToNobodyElse) {
  const std::regex reference(R"re((?:src|href)="([^"]+)"|from "\./([^"]+)"|new URL\("([^"]+)", import\.meta\.url\))re");
  std::size_t found = 0;
  for (const auto& file : page_files()) {
    const std::string text(file.bytes);
    for (auto match = std::sregex_iterator(text.begin(), text.end(), reference); match != std::sregex_iterator(); ++match) {
      const auto& m = *match;
      std::string target = m[1].matched ? "/" + m[1].str() : "/page/" + (m[2].matched ? m[2].str() : m[3].str());
      if (target.starts_with("/#") || target.starts_with("/v1/") || target == "/openapi.json") continue;
      EXPECT_NE(find_file(target), nullptr) << file.path << " names " << target;
      ++found;
    }
    const std::regex elsewhere(R"(https?://(?!www\.w3\.org/2000/svg))");
    EXPECT_FALSE(std::regex_search(text, elsewhere)) << file.path;
  }
  EXPECT_GT(found, 10U);
}

// The content security policy forbids them, and a browser would leave them out without a word to us.
TEST(PageFiles, HaveNoInlineScriptsOrStyles) {
  const auto* const page = find_file("/");
  ASSERT_NE(page, nullptr);
  const std::string text(page->bytes);
  EXPECT_FALSE(std::regex_search(text, std::regex(R"(<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|javascript:)")));
}

TEST_F(ServerTest, PageFilesAreServedWithTypePolicyAndTag) {
  start();
  auto client = connect();
  for (const auto& file : page_files()) {
    client.send(get(file.path));
    const auto reply = client.read_reply();
    EXPECT_EQ(reply.status, 200) << file.path;
    EXPECT_EQ(reply.body, file.bytes) << file.path;
    EXPECT_EQ(reply.header("content-type"), file.content_type);
    EXPECT_EQ(reply.header("etag"), file.etag);
    EXPECT_EQ(reply.header("cache-control"), "no-cache") << "once, and not the no-store of other replies";
    EXPECT_THAT(reply.header("content-security-policy"), HasSubstr("default-src 'self'"));
    EXPECT_THAT(reply.header("content-security-policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(reply.header("x-content-type-options"), "nosniff");
  }
  EXPECT_THAT(find_file("/")->content_type, HasSubstr("text/html"));
  EXPECT_THAT(find_file("/page/main.mjs")->content_type, HasSubstr("text/javascript"));
  EXPECT_THAT(find_file("/page/page.css")->content_type, HasSubstr("text/css"));
  client.send(get("/v1/voices"));
  EXPECT_EQ(client.read_reply().header("cache-control"), "no-store");
}

TEST_F(ServerTest, UnchangedPageFilesAreNotSentAgain) {
  start();
  auto client = connect();
  const auto& file = *find_file("/page/main.mjs");
  client.send(get(file.path, "If-None-Match: " + std::string(file.etag) + "\r\n"));
  const auto same = client.read_reply(true);
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.header("etag"), file.etag);
  EXPECT_EQ(same.header("content-length"), "") << "would be the length of a body that is not sent";
  client.send(get(file.path, "If-None-Match: \"older\"\r\n"));
  const auto other = client.read_reply();
  EXPECT_EQ(other.status, 200) << "and nothing of a 304 was left in between";
  EXPECT_EQ(other.body, file.bytes);
  client.send("HEAD " + std::string(file.path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto head = client.read_reply(true);
  EXPECT_EQ(head.header("content-length"), std::to_string(file.bytes.size()));
  client.send(get("/page/"));
  EXPECT_EQ(client.read_reply().status, 404);
  client.send(get("/page/index.html"));
  EXPECT_EQ(client.read_reply().status, 404) << "it has one address";
}

}  // namespace
}  // namespace tts::net
