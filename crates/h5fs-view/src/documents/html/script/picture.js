// A picture: a slider for a stack, zoom, the value at the pointer, the colour range.

/** Number of steps of a range handle. */
const HANDLE = 1000;

class Picture {
  constructor(figure) {
    const told = figure.dataset;
    this.figure = figure;
    this.image = figure.querySelector("img");
    this.dims = told.dims.split(" ").map(Number);
    this.leading = this.dims.slice(0, Number(told.leading));
    this.count = this.leading.reduce((product, extent) => product * extent, 1);
    const [down, across] = told.sides.split(" ").map(Number);
    this.shape = {
      height: this.dims[down], width: this.dims[across],
      isBelow: "below" in told, isRight: "right" in told,
    };
    this.file = told.numbers;
    this.number = 0;
    this.controls = make("div", { className: "controls" });
    this.problem = complaint();
    this.latest = new Latest(this.problem.say);
    const caption = figure.querySelector("figcaption");
    caption.before(this.controls, this.problem.line);
    if (this.file) {
      this.look = {
        samples: Number(told.samples),
        missing: "missing" in told ? Number(told.missing) : undefined,
        colours: null,
      };
      this.begin = { low: Number(told.low), high: Number(told.high), isLog: "log" in told };
      this.ends = [Number(told.least), Number(told.most)];
      this.addCanvas();
    }
    if (this.count > 1) this.addSlider();
    if (this.file) {
      this.addZoom();
      if (this.figure.querySelector(".bar")) this.addRange();
      this.controls.append(this.readout);
    }
    document.addEventListener("keydown", (event) => {
      if (!isTaken(event)) this.press(event);
    });
  }

  /** Returns the indices of a picture in the dimensions before rows and columns. */
  indices(number) {
    const indices = [];
    for (const extent of this.leading.toReversed()) {
      indices.unshift(number % extent);
      number = Math.floor(number / extent);
    }
    return indices;
  }

  // ------------------------------------------------------------ the slider of a stack

  addSlider() {
    this.slider = make("input", { type: "range", min: 0, max: this.count - 1, value: 0, className: "frame" });
    this.where = make("output");
    this.slider.addEventListener("input", () => this.turnTo(Number(this.slider.value)));
    this.controls.append(make("label", { className: "wide-control" }, "picture ", this.slider, this.where));
    this.tellNumber();
    const strip = this.figure.nextElementSibling;
    if (!strip?.classList.contains("strip")) return;
    for (const link of strip.querySelectorAll("a")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.turnTo(Number(link.textContent));
      });
    }
  }

  turnTo(number) {
    this.number = Math.min(Math.max(number, 0), this.count - 1);
    if (this.slider) this.slider.value = this.number;
    this.tellNumber();
    if (this.file) this.load();
    else this.swap();
  }

  tellNumber() {
    if (!this.where) return;
    const indices = this.indices(this.number);
    const place = indices.length > 1 ? ` [${indices.join(", ")}]` : "";
    this.where.value = `${this.number} of ${this.count}${place}`;
    const digits = (text) => String(this.number).padStart(text.length, "0");
    const link = this.image.parentElement;
    link.href = link.href.replace(/\d+(?=\.png$)/, digits);
  }

  /** Shows the server's rendering of another picture of the stack. */
  swap() {
    const stem = this.image.src.slice(0, this.image.src.lastIndexOf("%5B"));
    this.image.src = `${stem}${encodeURIComponent(`[${this.indices(this.number).join(",")}]`)}.png`;
  }

  // ------------------------------------------------------------ the canvas and its numbers

  addCanvas() {
    this.canvas = make("canvas", { tabIndex: 0, role: "img", "aria-label": this.image.alt });
    this.canvas.title = "Drag to move, + and − to zoom, Shift and arrows to read values";
    const link = this.image.parentElement;
    link.tabIndex = -1;
    wrap(link, make("div", { className: "overlaid" })).append(this.canvas);
    this.readout = make("output", { className: "value", "aria-live": "polite" });
    this.window = this.wholeWindow();
    this.range = { ...this.begin };
    const ends = (side) => [...this.figure.querySelectorAll(`:scope > .${side} > span`)].filter((_, n) => n !== 1);
    this.sides = [ends("down"), ends("along")];
    this.texts = this.sides.map((side) => side.map((end) => end.textContent));
    this.whole = null;
    this.close = null;
    const stops = [...this.figure.querySelectorAll(".bar stop")];
    this.look.colours = stops.length ? coloursOf(stops) : null;
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.canvas.addEventListener("pointerenter", () => this.whole ?? this.load());
    this.canvas.addEventListener("focus", () => this.whole ?? this.load());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("dblclick", (event) => this.zoom(2, this.placeOf(event)));
    this.canvas.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  wholeWindow() {
    return { x: 0, y: 0, width: this.shape.width, height: this.shape.height };
  }

  isWhole() {
    return this.window.width >= this.shape.width && this.window.height >= this.shape.height;
  }

  load() {
    this.latest.run(async () => {
      const number = this.number;
      const isWhole = this.isWhole() || this.whole?.number !== number;
      const slices = slicesOf(isWhole ? this.wholeWindow() : this.window, this.shape);
      const samples = this.look.samples > 1 ? [[0, this.look.samples]] : [];
      const axes = [...this.indices(number), ...slices, ...samples];
      const patch = { number, slices, numbers: await numbersOf(this.file, axes) };
      this.paint(patch);
      if (isWhole) [this.whole, this.close] = [patch, null];
      else this.close = patch;
      this.draw();
      this.tellValue();
      if (isWhole && !this.isWhole()) this.load();
    });
  }

  paint(patch) {
    const width = countOf(patch.slices[1]);
    const pixels = pixelsOf(patch.numbers, width, this.range, this.look);
    patch.bitmap ??= make("canvas", { width, height: pixels.height });
    patch.bitmap.getContext("2d").putImageData(pixels, 0, 0);
  }

  draw() {
    if (!this.whole) return;
    const { canvas, window, shape } = this;
    const box = canvas.getBoundingClientRect();
    canvas.width = Math.max(1, Math.round(box.width * devicePixelRatio));
    canvas.height = Math.max(1, Math.round(box.height * devicePixelRatio));
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.scale(canvas.width / window.width, canvas.height / window.height);
    context.translate(-window.x, -window.y);
    if (this.cross) this.markCross(context);
    if (shape.isRight) context.transform(-1, 0, 0, 1, shape.width, 0);
    if (shape.isBelow) context.transform(1, 0, 0, -1, 0, shape.height);
    context.beginPath();
    context.rect(0, 0, shape.width, shape.height);
    context.clip();
    context.globalCompositeOperation = "destination-over";
    for (const patch of [this.close, this.whole]) {
      if (patch?.number !== this.whole.number) continue;
      const [[top, , step], [left]] = patch.slices;
      const { bitmap } = patch;
      context.drawImage(bitmap, left, top, bitmap.width * step, bitmap.height * step);
    }
    this.figure.classList.add("drawn");
    this.tellSides();
  }

  /** Labels the sides with the visible part: the labels of the page, or the indices at the ends. */
  tellSides() {
    const { x, y, width, height } = this.window;
    const first = this.elementAt({ x: x + 0.001, y: y + 0.001 });
    const last = this.elementAt({ x: x + width - 0.001, y: y + height - 0.001 });
    this.sides.forEach((side, axis) => {
      side.forEach((end, place) => {
        const index = (place === 0 ? first : last)[axis];
        end.textContent = this.isWhole() ? this.texts[axis][place] : `[${index}]`;
      });
    });
  }

  markCross(context) {
    const { x, y } = this.cross;
    const { window } = this;
    context.fillStyle = "#f0f";
    const [wide, high] = [window.width / this.canvas.width, window.height / this.canvas.height];
    context.fillRect(x + 0.5 - wide, window.y, 2 * wide, window.height);
    context.fillRect(window.x, y + 0.5 - high, window.width, 2 * high);
  }

  // ------------------------------------------------------------ positions and the value at the pointer

  /** Returns the position of a pointer in the picture. */
  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return {
      x: this.window.x + ((event.clientX - box.left) / box.width) * this.window.width,
      y: this.window.y + ((event.clientY - box.top) / box.height) * this.window.height,
    };
  }

  point(event) {
    if (event.buttons) return;
    this.cross = null;
    this.place = this.placeOf(event);
    this.tellValue();
  }

  grab(event) {
    if (event.button !== 0) return;
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    let [x, y] = [event.clientX, event.clientY];
    const box = this.canvas.getBoundingClientRect();
    const drag = (moved) => {
      const right = ((x - moved.clientX) / box.width) * this.window.width;
      const down = ((y - moved.clientY) / box.height) * this.window.height;
      [x, y] = [moved.clientX, moved.clientY];
      this.moveTo({ ...this.window, x: this.window.x + right, y: this.window.y + down });
    };
    this.canvas.addEventListener("pointermove", drag);
    const end = () => this.canvas.removeEventListener("pointermove", drag);
    this.canvas.addEventListener("lostpointercapture", end, { once: true });
  }

  roll(event) {
    if (!event.ctrlKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8, this.placeOf(event));
  }

  /** Zooms in by `factor` at a position. */
  zoom(factor, place = this.middle()) {
    const { window, shape } = this;
    const width = Math.min(Math.max(window.width / factor, Math.min(2, shape.width)), shape.width);
    const height = Math.min(Math.max(window.height / factor, Math.min(2, shape.height)), shape.height);
    const x = place.x - ((place.x - window.x) / window.width) * width;
    const y = place.y - ((place.y - window.y) / window.height) * height;
    this.moveTo({ x, y, width, height });
  }

  middle() {
    const { x, y, width, height } = this.window;
    return this.cross ?? { x: x + width / 2, y: y + height / 2 };
  }

  moveTo(window) {
    const within = (begin, length, all) => Math.min(Math.max(begin, 0), all - length);
    const x = within(window.x, window.width, this.shape.width);
    const y = within(window.y, window.height, this.shape.height);
    this.window = { ...window, x, y };
    this.draw();
    this.load();
  }

  addZoom() {
    this.controls.append(
      button("+", "zoom in", () => this.zoom(2)),
      button("−", "zoom out", () => this.zoom(0.5)),
      button("whole", "the whole picture", () => this.moveTo(this.wholeWindow())),
    );
  }

  press(event) {
    const { key, shiftKey } = event;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (shiftKey && key in ways && this.file) this.moveCross(ways[key]);
    else if (key === "ArrowLeft" && this.count > 1) this.turnTo(this.number - 1);
    else if (key === "ArrowRight" && this.count > 1) this.turnTo(this.number + 1);
    else if (key === "+" && this.file) this.zoom(2);
    else if (key === "-" && this.file) this.zoom(0.5);
    else if (key === "0" && this.file) this.moveTo(this.wholeWindow());
    else return;
    event.preventDefault();
  }

  moveCross([right, down]) {
    const from = this.cross ?? this.middle();
    const within = (place, length) => Math.min(Math.max(Math.floor(place), 0), length - 1);
    const { width, height } = this.shape;
    // Move to the next loaded number. If only every n-th number is loaded, skip the elements between.
    const step = this.patchAt(from)?.slices[0][2] ?? 1;
    this.cross = {
      x: within(from.x + (this.cross ? right * step : 0), width),
      y: within(from.y + (this.cross ? down * step : 0), height),
    };
    this.place = this.cross;
    const { x, y } = this.cross;
    const { window } = this;
    const isSeen = x >= window.x && x < window.x + window.width && y >= window.y && y < window.y + window.height;
    if (isSeen) this.draw();
    else this.moveTo({ ...window, x: x - window.width / 2, y: y - window.height / 2 });
    this.tellValue();
  }

  /** Returns the element at a position: row and column. */
  elementAt({ x, y }) {
    const { height, width, isBelow, isRight } = this.shape;
    const [row, column] = [Math.floor(y), Math.floor(x)];
    return [isBelow ? height - 1 - row : row, isRight ? width - 1 - column : column];
  }

  /** Returns the most detailed loaded numbers at a position. */
  patchAt(place) {
    const element = this.elementAt(place);
    const has = (patch) =>
      patch?.number === this.number &&
      patch.slices.every(([begin, end], axis) => element[axis] >= begin && element[axis] < end);
    return [this.close, this.whole].find(has);
  }

  tellValue() {
    const patch = this.place && this.patchAt(this.place);
    if (!patch) return;
    const places = this.elementAt(this.place).map((index, axis) => {
      const [begin, , step] = patch.slices[axis];
      return Math.floor((index - begin) / step);
    });
    const element = places.map((place, axis) => patch.slices[axis][0] + place * patch.slices[axis][2]);
    const { samples, missing } = this.look;
    const first = (places[0] * countOf(patch.slices[1]) + places[1]) * samples;
    const texts = [];
    for (let part = 0; part < samples; part += 1) {
      const isMissing = samples === 1 && Number(patch.numbers.values[first]) === missing;
      texts.push(isMissing ? "missing" : textOf(patch.numbers, first + part));
    }
    this.readout.value = `[${[...this.indices(this.number), ...element].join(", ")}] = ${texts.join(", ")}`;
  }

  // ------------------------------------------------------------ the colour range

  addRange() {
    const [least, most] = this.ends;
    this.reach = [Math.min(least, this.begin.low), Math.max(most, this.begin.high)];
    this.handles = ["low", "high"].map((end) => {
      const handle = make("input", { type: "range", min: 0, max: HANDLE, className: end });
      const field = make("input", { type: "number", step: "any", className: end });
      handle.setAttribute("aria-label", `${end} end of the colours`);
      field.setAttribute("aria-label", `${end} end of the colours, as a number`);
      handle.addEventListener("input", () => {
        this.setEnd(end, valueIn(this.reachAsRange(), Number(handle.value) / HANDLE));
      });
      field.addEventListener("change", () => this.setEnd(end, Number(field.value)));
      return { end, handle, field };
    });
    this.log = make("input", { type: "checkbox", className: "log" });
    this.log.addEventListener("change", () => this.setLog(this.log.checked));
    const reset = button("as it was", "the range with which the page began", () => this.setRange({ ...this.begin }));
    const pairs = this.handles.map(({ end, handle, field }) =>
      make("span", { className: "wide-control" }, end === "low" ? "from " : "to ", handle, field));
    this.controls.append(...pairs, make("label", {}, this.log, " by the logarithm"), reset);
    this.note = make("p", { className: "note", hidden: true });
    this.controls.append(this.note);
    this.tellRange();
  }

  /** Returns the range within which the handles can be dragged. */
  reachAsRange() {
    const [low, high] = this.reach;
    const { isLog } = this.range;
    return { low: isLog && low <= 0 ? Math.min(this.leastAbove(), this.range.low) : low, high, isLog };
  }

  /** Returns the smallest known number above 0. */
  leastAbove() {
    let least = this.begin.isLog ? this.begin.low : Infinity;
    for (const value of this.whole?.numbers.values ?? []) {
      const number = Number(value);
      if (number > 0 && number < least) least = number;
    }
    return Number.isFinite(least) ? least : this.reach[1] / 1e6;
  }

  setEnd(end, value) {
    if (!Number.isFinite(value)) return;
    const range = { ...this.range, [end]: value };
    if (range.isLog && range.low <= 0) range.low = this.leastAbove();
    if (range.low > range.high) range[end === "low" ? "high" : "low"] = value;
    this.setRange(range);
  }

  async setLog(isLog) {
    const range = { ...this.range, isLog };
    if (isLog && range.high <= 0) {
      this.log.checked = false;
      return;
    }
    if (isLog && range.low <= 0) range.low = Math.min(this.leastAbove(), range.high);
    this.setRange(range);
  }

  setRange(range) {
    this.range = range;
    this.tellRange();
    if (!this.whole) {
      this.load();
      return;
    }
    for (const patch of [this.whole, this.close]) if (patch) this.paint(patch);
    this.draw();
  }

  tellRange() {
    const reach = this.reachAsRange();
    for (const { end, handle, field } of this.handles) {
      handle.value = Math.round(HANDLE * shareIn(reach, this.range[end]));
      field.value = short(this.range[end]);
    }
    this.log.checked = this.range.isLog;
    const ticks = [...this.figure.querySelectorAll(".bar .along span")];
    ticks.forEach((tick, number) => {
      tick.textContent = short(valueIn(this.range, number / Math.max(ticks.length - 1, 1)));
    });
    const isBegin = ["low", "high", "isLog"].every((key) => this.range[key] === this.begin[key]);
    this.note.hidden = isBegin;
    const { low, high, isLog } = this.range;
    const by = isLog ? " by the logarithm" : "";
    this.note.textContent = `Now from ${short(low)} to ${short(high)}${by}, as chosen here; the text beneath tells how the page began.`;
  }
}
