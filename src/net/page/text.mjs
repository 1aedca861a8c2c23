// Text as the server counts it (Unicode code points), and the pieces in which a language model would write it.

// Halves of surrogate pairs and NUL cannot travel.
export function clean(text) {
  return text.replace(/\p{Surrogate}/gu, "\ufffd").replaceAll("\0", "");
}

export function codePoints(text) {
  return Array.from(text);
}

// Words with the space behind them; of Chinese and Japanese, single characters.
export function pieces(text) {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+\s*|\s+/gu) ?? [];
}

// Calls `write(text)` with the pieces, `perSecond()` of them each second, then `finish()`. A late timer (a tab in the background) is made up for.
export class Typist {
  #pieces;
  #next = 0;
  #timer = 0;
  #credit = 1; // the first piece goes at once
  #then = performance.now();

  constructor(text, perSecond, write, finish) {
    this.#pieces = pieces(text);
    const type = () => {
      const now = performance.now();
      this.#credit += ((now - this.#then) / 1000) * perSecond();
      this.#then = now;
      const due = Math.min(Math.floor(this.#credit), this.#pieces.length - this.#next);
      if (due > 0) {
        this.#credit -= due;
        write(this.#pieces.slice(this.#next, this.#next + due).join(""));
        this.#next += due;
      }
      if (this.#next === this.#pieces.length) {
        finish();
        return;
      }
      this.#timer = setTimeout(type, Math.max(10, ((1 - this.#credit) / perSecond()) * 1000));
    };
    type();
  }

  get done() { return this.#next === this.#pieces.length; }
  get typed() { return this.#next; }
  get total() { return this.#pieces.length; }
  stop() { clearTimeout(this.#timer); }
}
