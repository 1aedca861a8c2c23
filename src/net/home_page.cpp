#include "home_page.h"

namespace tts::net {

std::string_view home_page() noexcept {
  return R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>chattts-server</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
  textarea { width: 100%; height: 6rem; font: inherit; box-sizing: border-box; }
  code, pre { background: #8882; border-radius: 4px; padding: .1em .3em; }
  pre { padding: .6em; overflow-x: auto; }
  #status { min-height: 1.5em; }
  @media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } textarea, select, button { background: #282828; color: #ddd; } }
</style>
<h1>chattts-server</h1>
<form id="form">
  <p><label for="text">Text</label><br><textarea id="text" required>Hello! 你好，很高兴认识你。</textarea></p>
  <p><label>Voice <select id="voice"></select></label>
     <label>Speed <input id="speed" type="number" min="0.5" max="2" step="0.1" value="1"></label>
     <button>Speak</button> <button type="button" id="stop">Stop</button></p>
  <p id="status" role="status"></p>
</form>
<h2>Endpoints</h2>
<ul>
  <li><code>POST /synthesize</code>: text to one audio file</li>
  <li><code>POST /synthesize_stream</code>: the same body, audio while it is made</li>
  <li><code>POST /v1/audio/speech</code>: OpenAI's speech endpoint</li>
  <li><a href="/v1/voices"><code>GET /v1/voices</code></a>, <a href="/v1/models"><code>GET /v1/models</code></a>,
      <a href="/openapi.json"><code>GET /openapi.json</code></a></li>
</ul>
<pre id="curl"></pre>
<script>
const $ = (id) => document.getElementById(id);
$("curl").textContent = `curl ${location.origin}/synthesize -d '{"text":"Hello"}' -o hello.wav`;
fetch("/v1/voices").then((r) => r.json()).then((list) => {
  for (const v of list.data) $("voice").add(new Option(`${v.title} (${v.languages.join(", ")})`, v.id, v.default, v.default));
});
let running = null;
$("stop").onclick = () => running && running.stop();
$("form").onsubmit = async (event) => {
  event.preventDefault();
  if (running) running.stop();
  const abort = new AbortController(), audio = new AudioContext(), begun = performance.now();
  const me = running = { stop() { abort.abort(); audio.close(); running = null; } };
  $("status").textContent = "…";
  try {
    const reply = await fetch("/synthesize_stream", { method: "POST", signal: abort.signal, headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ text: $("text").value, voice: $("voice").value || undefined, speed: Number($("speed").value), format: "pcm" }) });
    if (!reply.ok) throw new Error((await reply.json()).error.message);
    const rate = Number(reply.headers.get("X-Sample-Rate")), reader = reply.body.getReader();
    let playAt = 0, total = 0, odd = new Uint8Array(0), first = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const bytes = new Uint8Array(odd.length + value.length);
      bytes.set(odd); bytes.set(value, odd.length);
      const count = bytes.length >> 1;
      odd = bytes.slice(count * 2);
      if (!count) continue;
      first ||= performance.now() - begun;
      const view = new DataView(bytes.buffer), buffer = audio.createBuffer(1, count, rate), samples = buffer.getChannelData(0);
      for (let i = 0; i < count; ++i) samples[i] = view.getInt16(i * 2, true) / 32768;
      const source = new AudioBufferSourceNode(audio, { buffer });
      source.connect(audio.destination);
      playAt = Math.max(playAt, audio.currentTime + 0.02);
      source.start(playAt);
      playAt += buffer.duration; total += buffer.duration;
      $("status").textContent = `first sound after ${first.toFixed(0)} ms, ${total.toFixed(1)} s of audio`;
    }
  } catch (error) {
    if (running === me) $("status").textContent = error.message;
  }
};
</script>
)html";
}

}  // namespace tts::net
