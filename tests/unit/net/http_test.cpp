// HTTP as such: framing, limits, timeouts, methods, keep-alive.

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server_fixture.h"

namespace tts::net {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;

TEST_F(ServerTest, SmuggledRequestsGetOneRefusalAndTheDoor) {
  start();
  const std::string inner = get("/v1/voices");
  const std::vector<std::string> table{
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0B"
      "chunked\r\n\r\n0\r\n\r\n" +
          inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + inner,
      "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n" + inner,
      "GET / HTTP/1.1\r\n\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + inner,
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naXX0\r\n\r\n" + inner,
  };
  for (const auto& bytes : table) {
    auto client = connect();
    client.send(bytes);
    const auto reply = client.read_reply();
    EXPECT_TRUE(reply.status == 400 || reply.status == 413) << reply.status << "\n" << bytes;
    EXPECT_EQ(reply.header("connection"), "close") << bytes;
    EXPECT_EQ(json::parse(reply.body).at("error").at("type"), "invalid_request_error");
    EXPECT_TRUE(client.at_end()) << "a second answer to\n" << bytes;
  }
  EXPECT_EQ(speech_.started(), 0U);
}

TEST_F(ServerTest, BodyLimit) {
  options_.http.max_body_bytes = 100;
  start();
  const std::string big(101, ' ');
  for (const auto& request : {post("/synthesize", big),
                              "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + big + "\r\n0\r\n\r\n"}) {
    auto client = connect();
    client.send(request);
    const auto reply = client.read_reply();
    EXPECT_EQ(reply.status, 413);
    EXPECT_THAT(reply.body, HasSubstr("exceeds 100 bytes"));
    EXPECT_THAT(reply.body, HasSubstr("\"too_large\""));
  }
  auto client = connect();
  client.send(post("/synthesize", std::string(100, ' ')));
  EXPECT_EQ(client.read_reply().status, 400) << "at the limit the body is read and found to be no JSON";
}

TEST_F(ServerTest, HeaderLimit) {
  options_.http.max_header_bytes = 500;
  start();
  auto client = connect();
  client.send(get("/", "X-Long: " + std::string(500, 'a') + "\r\n"));
  EXPECT_EQ(client.read_reply().status, 431);
  EXPECT_TRUE(client.at_end());
  auto endless = connect();
  endless.send("GET /" + std::string(5000, 'a'));
  EXPECT_EQ(endless.read_reply().status, 431);
  auto fitting = connect();
  fitting.send(get("/v1/voices", "X-Long: " + std::string(300, 'a') + "\r\n"));
  EXPECT_EQ(fitting.read_reply().status, 200);
}

TEST_F(ServerTest, ChunkCountLimit) {
  options_.http.max_body_chunks = 10;
  start();
  const auto chunked = [](int count) {
    std::string request = "POST /synthesize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < count; ++i) request += "1\r\n \r\n";
    return request + "0\r\n\r\n";
  };
  auto client = connect();
  client.send(chunked(11));
  EXPECT_EQ(client.read_reply().status, 400);
  EXPECT_TRUE(client.at_end());
  auto fitting = connect();
  fitting.send(chunked(9));
  const auto reply = fitting.read_reply();
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("not valid JSON")) << "read whole and handed on";
}

TEST_F(ServerTest, ConnectionLimit) {
  options_.http.max_connections = 2;
  start();
  auto first = connect();
  auto second = connect();
  for (auto* client : {&first, &second}) {
    client->send(get("/v1/voices"));
    EXPECT_EQ(client->read_reply().status, 200);
  }
  auto third = connect();
  const auto reply = third.read_reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("retry-after"), "1");
  EXPECT_TRUE(third.at_end());
  EXPECT_THAT(metrics_.render(), HasSubstr("tts_rejected_total{reason=\"too_many_connections\"} 1"));
  first.send(get("/v1/voices"));
  EXPECT_EQ(first.read_reply().status, 200) << "the others are not disturbed";
}

TEST_F(ServerTest, ClientsTurnedAwayMayFinishTheirRequest) {
  options_.http.max_connections = 1;
  options_.http.linger_timeout = std::chrono::minutes(1);
  start();
  auto first = connect();
  first.send(get("/v1/voices"));
  EXPECT_EQ(first.read_reply().status, 200);
  auto second = connect();
  EXPECT_EQ(second.read_reply().status, 503);
  for (int i = 0; i < 3; ++i) {  // a closed socket answers the first piece by a reset, which over loopback comes at once
    EXPECT_TRUE(second.send("POST /synthesize HTTP/1.1\r\n"));
  }
  server_->stop();
  EXPECT_TRUE(second.at_end()) << "the end of the server does not wait for it";
}

TEST_F(ServerTest, SlowHeadersAreCut) {
  options_.http.header_timeout = milliseconds(50);
  start();
  auto silent = connect();
  EXPECT_TRUE(silent.at_end());
  auto slow = connect();
  slow.send("GET / HTTP/1.1\r\nHost");
  EXPECT_TRUE(slow.at_end());
}

TEST_F(ServerTest, SlowBodiesAreCut) {
  options_.http.body_timeout = milliseconds(50);
  start();
  auto client = connect();
  client.send("POST /synthesize HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ServerTest, IdleConnectionsAreClosed) {
  options_.http.idle_timeout = milliseconds(50);
  start();
  auto client = connect();
  client.send(get("/v1/voices"));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_TRUE(client.at_end());
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  auto client = connect();
  client.send(get("/v1/voices") + post("/synthesize", "{}") + "\r\n" + get("/nothing") + get("/v1/models", "Connection: close\r\n") +
              get("/"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("mei"));
  EXPECT_EQ(client.read_reply().status, 400);
  EXPECT_EQ(client.read_reply().status, 404);
  const auto last = client.read_reply();
  EXPECT_THAT(last.body, HasSubstr("tts-1"));
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(client.at_end()) << "nothing after Connection: close";
}

TEST_F(ServerTest, RequestSplitAtEveryByte) {
  start();
  auto client = connect();
  for (const char c : get("/v1/voices")) client.send({&c, 1});
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(ServerTest, ExpectContinue) {
  start();
  auto client = connect();
  client.send("POST /synthesize HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("{}");
  EXPECT_EQ(client.read_reply().status, 400);
  client.send(get("/", "Expect: miracles\r\n"));
  EXPECT_EQ(client.read_reply().status, 417);

  options_.http.max_body_bytes = 256 * 1024;
  auto big = connect();
  big.send("POST /synthesize HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(big.read_reply().status, 413) << "refused before the body is asked for";
}

TEST_F(ServerTest, MethodsAndPaths) {
  start();
  auto client = connect();
  client.send("HEAD /v1/voices HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto head = client.read_reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), std::to_string(api_.voices_json().size()));

  client.send(get("/v1/voices?x=1"));
  EXPECT_EQ(client.read_reply().body, api_.voices_json());
  for (const std::string target : {"http://somewhere/v1/voices", "HTTP://somewhere/v1/voices?x=/"}) {
    client.send("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read_reply().body, api_.voices_json()) << target;
  }
  client.send("GET http://somewhere?x=/v1/voices HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.read_reply().header("content-type"), HasSubstr("text/html")) << "the path is /";

  client.send(get("/synthesize"));
  const auto wrong = client.read_reply();
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST, OPTIONS");
  EXPECT_THAT(wrong.body, HasSubstr("answers POST only"));
  client.send("HEAD /synthesize HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.read_reply(true).status, 405);
  client.send("BREW /v1/voices HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.read_reply().header("allow"), "GET, HEAD, OPTIONS");

  client.send("OPTIONS /synthesize HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto options = client.read_reply();
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.header("allow"), "POST, OPTIONS");
  EXPECT_EQ(options.header("access-control-allow-origin"), "") << "CORS is off by default";
  client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 204);

  client.send(get("/nothing/here"));
  const auto missing = client.read_reply();
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(json::parse(missing.body).at("error").at("code"), "not_found");
  for (const auto* path : {"/metrics", "/livez", "/readyz"}) {
    client.send(get(path));
    EXPECT_EQ(client.read_reply().status, 404) << path << " belongs to the admin port";
  }
}

TEST_F(ServerTest, CorsWhenAllowed) {
  options_.http.cors_origin = "https://app.example";
  start();
  auto client = connect();
  client.send("OPTIONS /synthesize HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n");
  const auto preflight = client.read_reply();
  EXPECT_EQ(preflight.header("access-control-allow-origin"), "https://app.example");
  EXPECT_THAT(preflight.header("access-control-allow-headers"), HasSubstr("Content-Type"));
  client.send(get("/v1/voices", "Origin: https://evil.example\r\n"));
  EXPECT_EQ(client.read_reply().header("access-control-allow-origin"), "");
}

TEST_F(ServerTest, RequestIdsAreKeptWhenSane) {
  start();
  auto client = connect();
  client.send(get("/v1/voices", "X-Request-Id: my-id.1\r\n"));
  EXPECT_EQ(client.read_reply().header("x-request-id"), "my-id.1");
  client.send(get("/v1/voices", "X-Request-Id: bad id;\r\n"));
  EXPECT_EQ(client.read_reply().header("x-request-id").size(), 24U);
  client.send(
      "POST /synthesize HTTP/1.1\r\nHost: a\r\nX-Request-Id: head\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Request-Id: "
      "trailer\r\n\r\n");
  EXPECT_EQ(client.read_reply().header("x-request-id"), "head") << "trailers change nothing";
}

TEST_F(ServerTest, HomePageAndDocuments) {
  start();
  auto client = connect();
  client.send(get("/"));
  const auto home = client.read_reply();
  EXPECT_THAT(home.header("content-type"), HasSubstr("text/html"));
  EXPECT_THAT(home.body, HasSubstr("/synthesize_stream"));
  client.send(get("/openapi.json"));
  EXPECT_EQ(json::parse(client.read_reply().body).at("openapi"), "3.1.0");
}

TEST_F(ServerTest, AdminAnswersProbesAndMetrics) {
  start();
  RawClient admin(server_->admin_port());
  admin.send(get("/livez"));
  EXPECT_EQ(admin.read_reply().status, 200);
  admin.send(get("/readyz"));
  const auto ready = admin.read_reply();
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, R"({"ready":true})");
  readiness_.set_draining();
  admin.send(get("/readyz"));
  const auto draining = admin.read_reply();
  EXPECT_EQ(draining.status, 503);
  EXPECT_THAT(json::parse(draining.body).at("reason").get<std::string>(), HasSubstr("draining"));
  admin.send(get("/metrics"));
  const auto metrics = admin.read_reply();
  EXPECT_THAT(metrics.header("content-type"), HasSubstr("version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("tts_queue_length 0\n"));
  EXPECT_THAT(metrics.body, HasSubstr("tts_ready 0\n"));
  EXPECT_THAT(metrics.body, HasSubstr("tts_requests_total{code=\"503\",route=\"/readyz\"} 1\n"));
  admin.send(get("/v1/voices"));
  EXPECT_EQ(admin.read_reply().status, 404);
}

TEST_F(ServerTest, PathsOfStrangersNeverBecomeLabels) {
  start();
  auto client = connect();
  client.send(get("/wp-login.php"));
  EXPECT_EQ(client.read_reply().status, 404);
  client.send(get("/v1/voices"));
  client.read_reply();  // the first request's accounts are closed before the second is read
  const auto text = metrics_.render();
  EXPECT_THAT(text, HasSubstr("tts_requests_total{code=\"404\",route=\"other\"} 1\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("wp-login")));
}

TEST_F(ServerTest, AddressInUseIsSaidAtOnce) {
  start();
  auto taken = options_;
  taken.http.port = server_->port();
  const ServerParts parts{.start = {}, .api = api_, .readiness = readiness_, .metrics = metrics_, .clock = clock_};
  try {
    const Server second(parts, taken);
    FAIL() << "two servers on one port";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:" + std::to_string(server_->port())));
  }
  taken.http.host = "example.org";
  EXPECT_THROW(Server(parts, taken), std::runtime_error) << "names are not resolved";
  taken.http.host = "localhost";
  taken.http.port = 0;
  EXPECT_NO_THROW(Server(parts, taken)) << "but for this one";
}

}  // namespace
}  // namespace tts::net
