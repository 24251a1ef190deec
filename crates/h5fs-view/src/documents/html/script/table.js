// A table: scrolls through all rows.

/** Rows in one request. */
const ROWS = 200;

/** Maximum number of cached blocks of rows. */
const KEPT = 32;

/** Number of matrix columns that are shown at the same time. */
const COLUMNS = 20;

/** Maximum height in pixels of a box that browsers can scroll. */
const TALLEST = 4e6;

/** Number of visible rows. */
const SEEN = 20;

class Table {
  constructor(box, closed) {
    const told = box.dataset;
    this.stored = told.rows;
    this.decoded = told.decoded;
    this.isDecoded = Boolean(this.decoded);
    this.parts = told.parts?.split(" ") ?? [""];
    this.isRecord = "record" in told;
    const dims = told.dims.split(" ").filter((text) => text).map(Number);
    this.before = dims.slice(0, Number(told.leading));
    this.leading = this.before.map(() => 0);
    [this.rows = 1, this.columns = 1] = dims.slice(this.before.length);
    if (this.isRecord) this.columns = 1;
    this.isMatrix = !this.isRecord && dims.length > this.before.length + 1;
    this.row = box.querySelector("tbody tr");
    this.line = this.row.getBoundingClientRect().height;
    this.first = 0;
    this.column = 0;
    this.blocks = new Map();
    this.problem = complaint();
    this.begin(box, closed);
  }

  /** Returns whether the page shows only a part of the table. */
  static isCut(box) {
    const note = box.nextElementSibling;
    const has = (text) => note?.classList.contains("note") && note.textContent.includes(text);
    return has(" of ") || has(" at index ") || box.querySelector("thead th:last-child")?.textContent === "…";
  }

  begin(box, closed) {
    // The content of the page stays until the server sends the same rows.
    this.head = box.querySelector("thead");
    this.body = box.querySelector("tbody");
    this.seen = Math.min(this.rows, SEEN);
    this.table = make("table", {}, this.head, this.body);
    const height = Math.min(this.rows * this.line, TALLEST);
    const rest = 20;
    this.inner = make("div", { className: "inner" }, make("div", { className: "held" }, this.table));
    this.inner.style.height = `${height + this.line + 2}px`;
    this.box = make("div", { className: "scrolled", tabIndex: 0, role: "region", "aria-label": "all rows" }, this.inner);
    this.box.style.height = `${(this.seen + 1) * this.line + rest}px`;
    this.latest = new Latest(this.problem.say, this.box, closed);
    box.after(this.box);
    const note = this.box.nextElementSibling;
    const asStored = note?.nextElementSibling;
    if (asStored?.matches("details.stored")) asStored.hidden = true;
    this.controls = make("div", { className: "controls" });
    this.box.after(this.controls, this.problem.line);
    if (note?.classList.contains("note")) note.hidden = true;
    box.hidden = true;
    this.restore();
    this.addControls();
    this.hideCovered = hideCovered(this.box);
    this.box.addEventListener("scroll", () => this.scrolled());
    this.box.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    this.box.addEventListener("keydown", (event) => this.press(event));
    const [row] = address.numbers("row") ?? [];
    if (row > 0) this.goTo(row);
    else this.load();
  }

  /** Takes the state from the page's URL. */
  restore() {
    const index = address.numbers("index") ?? [];
    this.leading = this.before.map((extent, axis) => within(index[axis] ?? 0, extent));
    const [column] = address.numbers("column") ?? [0];
    this.column = Math.floor(within(column, this.columns) / COLUMNS) * COLUMNS;
    if (address.numbers("stored")) this.isDecoded = false;
  }

  addControls() {
    this.field = make("input", { type: "number", min: 0, max: this.rows - 1, value: 0, className: "row-number" });
    this.field.addEventListener("change", () => this.goTo(numberIn(this.field) ?? this.first));
    this.controls.append(make("label", {}, "row ", this.field, ` of ${this.rows}`));
    this.before.forEach((extent, axis) => {
      const field = make("input", { type: "number", min: 0, max: extent - 1, className: "index" });
      field.value = this.leading[axis];
      field.addEventListener("change", () => {
        this.leading[axis] = within(numberIn(field) ?? this.leading[axis], extent);
        field.value = this.leading[axis];
        address.set("index", this.leading, this.leading.every((index) => index === 0));
        this.reload();
      });
      this.controls.append(make("label", {}, `index along axis ${axis} `, field));
    });
    if (this.isMatrix && this.columns > COLUMNS) {
      const step = (by) => () => this.turnTo(this.column + by * COLUMNS);
      this.span = make("output");
      this.controls.append(button("←", "columns before", step(-1)), this.span, button("→", "columns behind", step(1)));
    }
    if (this.decoded) {
      const box = make("input", { type: "checkbox", className: "as-stored", checked: !this.isDecoded });
      box.addEventListener("change", () => {
        this.isDecoded = !box.checked;
        address.set("stored", [1], this.isDecoded);
        this.reload();
      });
      this.controls.append(make("label", {}, box, " as stored, not as the CF conventions define"));
    }
    this.controls.append(address.copyButton());
  }

  turnTo(column) {
    this.column = Math.min(Math.max(column, 0), Math.floor((this.columns - 1) / COLUMNS) * COLUMNS);
    address.set("column", [this.column], this.column === 0);
    this.reload();
  }

  /** Loads the visible rows again, because other elements are shown. */
  reload() {
    this.blocks = new Map();
    this.load();
  }

  // ------------------------------------------------------------ the scroll position

  last() {
    return Math.max(this.rows - this.seen, 0);
  }

  isScaled() {
    return this.rows * this.line > TALLEST;
  }

  /** Returns the scrollable distance of the box in pixels. */
  way() {
    return Math.max(this.box.scrollHeight - this.box.clientHeight, 1);
  }

  scrolled() {
    if (this.isPlaced) {
      this.isPlaced = false;
      return;
    }
    const share = this.isScaled() ? (this.box.scrollTop / this.way()) * this.last() : this.box.scrollTop / this.line;
    this.show(Math.round(share));
  }

  roll(event) {
    if (!this.isScaled() || event.ctrlKey || event.deltaY === 0) return;
    event.preventDefault();
    this.goTo(this.first + Math.sign(event.deltaY) * Math.max(1, Math.round(Math.abs(event.deltaY) / this.line)));
  }

  press(event) {
    const ways = {
      ArrowDown: 1, ArrowUp: -1, PageDown: this.seen, PageUp: -this.seen, Home: -this.rows, End: this.rows,
    };
    if (!(event.key in ways)) return;
    event.preventDefault();
    this.goTo(this.first + ways[event.key]);
  }

  goTo(row) {
    const first = Math.min(Math.max(Math.floor(row) || 0, 0), this.last());
    const top = this.isScaled() ? (first / Math.max(this.last(), 1)) * this.way() : first * this.line;
    const before = this.box.scrollTop;
    this.box.scrollTop = top;
    this.isPlaced = this.box.scrollTop !== before;
    this.show(first);
  }

  show(first) {
    this.first = Math.min(Math.max(first, 0), this.last());
    if (document.activeElement !== this.field || !numberIn(this.field)) this.field.value = this.first;
    address.set("row", [this.first], this.first === 0);
    this.write();
    this.load();
  }

  // ------------------------------------------------------------ loading rows

  load() {
    this.latest.run(async (signal) => {
      const { blocks } = this;
      const [begin, end] = [this.first, Math.min(this.first + this.seen, this.rows)];
      for (let number = Math.floor(begin / ROWS); number * ROWS < end; number += 1) {
        if (!blocks.has(number)) await this.read(number, blocks, signal);
      }
      this.write();
    });
  }

  async read(number, blocks, signal) {
    const rows = [number * ROWS, Math.min((number + 1) * ROWS, this.rows)];
    const columns = [this.column, Math.min(this.column + COLUMNS, this.columns)];
    const { leading } = this;
    const axes = [...leading, rows, ...(this.isMatrix ? [columns] : [])];
    const records = this.isDecoded
      ? recordsOfNumbers(await numbersOf(this.decoded, axes, signal))
      : await recordsOf(this.stored, axes, signal);
    if (this.isRecord) this.names = records.shift();
    if (records.length !== countOf(rows)) {
      file.tellChanged();
      throw new Changed();
    }
    if (blocks.size >= KEPT) blocks.delete(blocks.keys().next().value);
    blocks.set(number, records);
  }

  write() {
    const width = Math.min(this.columns - this.column, COLUMNS);
    // An element of several columns, such as a complex number, has a head for each of them.
    const numbered = Array.from({ length: width }).flatMap((_, place) =>
      this.parts.map((part) => (this.isMatrix ? `${this.column + place} ${part}`.trim() : part)));
    const names = this.names ?? numbered;
    this.head.replaceChildren(rowOf("th", "", names));
    const rows = [];
    for (let row = this.first; row < Math.min(this.first + this.seen, this.rows); row += 1) {
      const block = this.blocks.get(Math.floor(row / ROWS));
      const record = block?.[row % ROWS] ?? names.map(() => "…");
      rows.push(rowOf("td", [...this.leading, row].join(","), record));
    }
    this.body.replaceChildren(...rows);
    this.hideCovered?.();
    if (this.span) this.span.value = `columns ${this.column} to ${this.column + width - 1} of ${this.columns}`;
  }
}

/** Returns the whole number that is closest to `index` and is an index of an axis of length `extent`. */
function within(index, extent) {
  return Math.min(Math.max(Math.floor(index), 0), Math.max(extent - 1, 0));
}

/** Returns the rows of decoded numbers as texts. A missing number has no text. */
function recordsOfNumbers(numbers) {
  const width = numbers.shape[1] ?? 1;
  const isMissing = (value) => Number.isNaN(value) || (numbers.type === "M8" && value === -(2n ** 63n));
  return Array.from({ length: numbers.shape[0] ?? 1 }, (_, row) =>
    Array.from({ length: width }, (__, column) => {
      const place = row * width + column;
      if (isMissing(numbers.values[place])) return "";
      const text = textOf(numbers, place);
      // As in a CSV file, a float has a point.
      return numbers.type.startsWith("f") && /^-?\d+$/.test(text) ? `${text}.0` : text;
    }));
}

/**
 * Hides the numbers of which the fixed column of a table covers the first digits, because the rest
 * reads as another number. Returns a function that does so after the cells have changed.
 */
function hideCovered(box) {
  const update = () => {
    const states = [];
    for (const { cells } of box.querySelectorAll("tr")) {
      const edge = cells[0].getBoundingClientRect().right - 0.5;
      for (const cell of [...cells].slice(1)) {
        const isText = cell.matches(".text, .left");
        states.push([cell, !isText && cell.getBoundingClientRect().left < edge]);
      }
    }
    for (const [cell, isCovered] of states) cell.classList.toggle("covered", isCovered);
  };
  box.addEventListener("scroll", update);
  new ResizeObserver(update).observe(box);
  return update;
}

function rowOf(name, label, texts) {
  const side = (text) => (Number.isNaN(Number(text)) && text !== "nan" ? "left" : "");
  const cells = texts.map((text) => make(name, { textContent: text, className: side(text) }));
  return make("tr", {}, make("th", { textContent: label }), ...cells);
}
