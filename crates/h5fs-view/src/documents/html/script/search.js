// A search for names and attributes in the whole file.

/** Milliseconds after the last key before the search starts. */
const PAUSE = 250;

class Search {
  constructor(place) {
    this.place = new URL(place, document.baseURI);
    this.field = make("input", { type: "search", placeholder: "search names and attributes ( / )", maxLength: 100 });
    this.field.setAttribute("aria-label", "search names and attributes in the whole file");
    this.state = make("output", { className: "note", "aria-live": "polite" });
    this.list = make("ul", { className: "found" });
    const form = make("form", { role: "search" }, this.field, this.state, this.list);
    document.querySelector("nav").after(form);
    form.addEventListener("submit", (event) => event.preventDefault());
    this.field.addEventListener("input", () => this.typed());
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || isTaken(event)) return;
      event.preventDefault();
      this.field.focus();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.field.value = "";
      this.typed();
      this.field.blur();
    });
  }

  typed() {
    clearTimeout(this.timer);
    this.control?.abort();
    this.list.replaceChildren();
    this.state.value = "";
    const wanted = this.field.value.trim();
    if (wanted) this.timer = setTimeout(() => this.seek(wanted), PAUSE);
  }

  async seek(wanted) {
    this.control = new AbortController();
    const { signal } = this.control;
    this.found = 0;
    this.state.value = "searching …";
    try {
      await this.read(`${this.place}${encodeURIComponent(wanted)}`, signal);
    } catch (error) {
      if (!signal.aborted) this.state.value = error.message;
    }
  }

  async read(url, signal) {
    const response = await fetch(url, { signal });
    if (!response.ok) throw new Error((await response.text()).trim());
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (signal.aborted || done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) this.take(JSON.parse(line));
    }
  }

  take(line) {
    if ("objects" in line) {
      const found = `${this.found} found in ${line.objects} objects`;
      if (!("is_whole" in line)) this.state.value = `${found} …`;
      else this.state.value = line.is_whole ? found : `${found}; there are more`;
      return;
    }
    this.found += 1;
    const name = make(line.page ? "a" : "span", { textContent: line.path });
    if (line.page) name.href = new URL(line.page, this.place);
    const item = make("li", {}, name);
    if ("attribute" in line) item.append(make("span", { textContent: ` @${line.attribute} = ${line.value}` }));
    if ("error" in line) item.append(make("span", { className: "error", textContent: line.error }));
    this.list.append(item);
  }
}
