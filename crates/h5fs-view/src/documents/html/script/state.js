// The state of the data file, which the page and all requests of its script must share, and the
// state of the page in its URL.

/** Milliseconds between two checks of a file that is followed. */
const INTERVAL = 700;

/** Milliseconds before a request is repeated, because the file has just changed. */
const RETRY = 300;

/** Maximum number of requests that are repeated in sequence. */
const RETRIES = 10;

/** Bytes of a NumPy file that contain its header. */
const HEADER = "bytes=0-1023";

/** The error of a request for a state of the file that is gone. */
class Changed extends Error {
  constructor() {
    super("the file has changed");
  }
}

function pause(time) {
  return new Promise((end) => setTimeout(end, time));
}

/** The state of the data file that the page shows. */
class FileState {
  constructor(told) {
    this.line = make("div", { className: "changed", hidden: true, role: "status" });
    this.again = button("load it again", "load the page in the present state of the file", () => {
      address.write();
      location.reload();
    });
    this.box = make("input", { type: "checkbox", className: "follow" });
    this.box.addEventListener("change", () => this.follow());
    this.text = make("span");
    this.follows = make("label", { hidden: true }, this.box, " follow while it grows");
    this.line.append(this.text, this.again, this.follows);
    this.take(told);
  }

  /** Makes the state of a newly loaded page the current one. `told` is the data of its script element. */
  take(told) {
    this.tag = told.state;
    this.shape = told.header ? told.shape.split(" ").map(Number) : null;
    this.header = told.header;
    this.isChanged = false;
    document.querySelector("main").prepend(this.line);
    this.follows.hidden = !(this.shape && ("growing" in told || this.box.checked));
    this.line.hidden = this.follows.hidden;
    this.again.hidden = true;
    this.text.textContent = "";
  }

  /** Returns the header fields of requests for this state. */
  fields() {
    return this.tag ? { "If-Match": `"${this.tag}"` } : {};
  }

  /** Reports that the file has changed. Offers to follow it if only its first axis has grown. */
  async tellChanged() {
    if (this.isChanged || this.box.checked) return;
    this.isChanged = true;
    this.line.hidden = false;
    this.again.hidden = false;
    this.text.textContent = "The file has changed. This page shows its earlier state.";
    try {
      const { shape } = await this.look();
      this.follows.hidden = !(shape && this.hasGrown(shape));
    } catch {
      this.follows.hidden = true;
    }
  }

  /** Returns whether only the first axis of the array is longer in `shape`. */
  hasGrown(shape) {
    return shape[0] > this.shape[0] && this.isAlike(shape);
  }

  /** Returns whether all axes but the first have the same length in `shape`, and the first is not shorter. */
  isAlike(shape) {
    return shape[0] >= this.shape[0] && this.shape.every((extent, axis) => axis === 0 || extent === shape[axis]);
  }

  /** Returns whether the file is still in this state, and the present shape of the array. */
  async look() {
    const ask = (fields) => fetch(this.header, { headers: { ...fields, Range: HEADER }, cache: "no-store" });
    if (!this.header) return { isSame: false, shape: null };
    let response = await ask(this.fields());
    const isSame = response.status !== 412;
    if (!isSame) response = await ask({});
    if (!response.ok) throw new Error(response.statusText);
    return { isSame, shape: headerIn(await response.arrayBuffer()).shape };
  }

  /** Returns whether the file is known to be in another state, or to lack what the page shows. */
  async hasGone() {
    const response = await fetch(this.header ?? location.href, { method: "HEAD", headers: this.fields(), cache: "no-store" });
    return response.status === 412 || response.status === 404;
  }

  /** Loads the page again whenever the file has changed, while the check box is checked. */
  async follow() {
    if (this.isFollowing) return;
    this.isFollowing = true;
    let failures = 0;
    while (this.box.checked) {
      try {
        const { isSame, shape } = await this.look();
        if (!this.isAlike(shape)) break;
        if (!isSame || shape[0] > this.shape[0]) await renew();
        failures = 0;
      } catch {
        failures += 1;
        if (failures === RETRIES) break;
      }
      await pause(INTERVAL);
    }
    this.isFollowing = false;
    if (!this.box.checked) return;
    this.box.checked = false;
    this.tellChanged();
  }
}

/** The part of the page's state that its URL contains after `#`. */
class Address {
  constructor() {
    this.words = new URLSearchParams(location.hash.slice(1));
  }

  /** Returns the numbers of a word, or null if the word is absent or has a part that is no number. */
  numbers(name) {
    const texts = this.words.get(name)?.split(",") ?? [];
    const numbers = texts.map((text) => (text.trim() ? Number(text) : NaN));
    return numbers.length && numbers.every(Number.isFinite) ? numbers : null;
  }

  /** Sets a word to numbers. With `first`, the numbers are those of a page without `#`, and the word is removed. */
  set(name, numbers, first = false) {
    const before = this.words.get(name);
    if (first) this.words.delete(name);
    else this.words.set(name, numbers.join(","));
    if (this.words.get(name) === before) return;
    clearTimeout(this.timer);
    // Browsers limit the number of changes in a time.
    this.timer = setTimeout(() => this.write(), 200);
  }

  write() {
    clearTimeout(this.timer);
    const text = this.words.toString().replaceAll("%2C", ",");
    if (text === location.hash.slice(1)) return;
    history.replaceState(history.state, "", text ? `#${text}` : location.pathname + location.search);
  }

  /** Returns a button that copies the URL. */
  copyButton() {
    const press = async () => {
      this.write();
      try {
        await navigator.clipboard.writeText(location.href);
        own.textContent = "copied";
      } catch {
        own.textContent = "the address bar has the link";
      }
      setTimeout(() => (own.textContent = "copy link"), 2000);
    };
    const own = button("copy link", "copy a link to this view", press);
    return own;
  }
}
