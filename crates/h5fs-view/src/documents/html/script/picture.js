// A picture: sliders for the axes that it does not show, the choice of its sides, zoom.

class Picture {
  constructor(figure, closed) {
    const told = figure.dataset;
    this.figure = figure;
    this.closed = closed;
    this.image = figure.querySelector("img");
    this.dims = told.dims.split(" ").map(Number);
    this.axes = this.dims.map((length, number) => new Axis(told, number, length));
    this.leading = this.axes.slice(0, Number(told.leading));
    this.count = this.leading.reduce((product, { length }) => product * length, 1);
    this.firstSides = told.sides.split(" ").map(Number);
    this.sides = [...this.firstSides];
    // Whether an axis that is a side runs upwards or to the left.
    this.flips = this.dims.map((_, axis) => (axis === this.sides[0] && "below" in told) || (axis === this.sides[1] && "right" in told));
    this.firstFlips = [...this.flips];
    // The indices of the shown picture, and those of the picture that is being loaded.
    this.at = this.dims.map(() => 0);
    this.wanted = [...this.at];
    this.place = told.numbers;
    this.unit = told.unit ?? "";
    this.look = { samples: Number(told.samples ?? 1), missing: "missing" in told ? Number(told.missing) : undefined, colours: null };
    this.controls = make("div", { className: "controls" });
    this.frames = make("div", { className: "controls frames" });
    this.problem = complaint();
    this.latest = new Latest(this.problem.say, figure, closed);
    if (this.place) this.addCanvas();
    const caption = figure.querySelector("figcaption");
    this.side = wrap(caption, make("div", { className: "side" }));
    this.addFrames();
    if (this.place) {
      this.pointer = new Pointer(this);
      this.addSides();
      this.addZoom();
      if (figure.querySelector(".bar")) this.range = new ColourRange(this, told);
      else this.plainRange = { low: Number(told.low), high: Number(told.high), isLog: false };
      this.controls.append(address.copyButton());
      this.side.prepend(this.frames, this.pointer.readout, this.problem.line, this.controls);
      this.profiles = new Profiles(this);
    } else {
      this.side.prepend(this.frames, this.problem.line);
    }
    document.addEventListener("keydown", (event) => {
      if (!isTaken(event)) this.press(event);
    }, { signal: closed });
    this.restore();
  }

  /** The picture's size in elements, and where its first element is. */
  get shape() {
    const [down, across] = this.sides;
    return { height: this.dims[down], width: this.dims[across], isBelow: this.flips[down], isRight: this.flips[across] };
  }

  /** The axes with a single index: all but the sides and the parts of a colour. */
  get hidden() {
    const all = this.place ? this.axes.slice(0, this.dims.length - (this.look.samples > 1 ? 1 : 0)) : this.leading;
    return all.filter(({ number }) => !this.sides.includes(number));
  }

  isFirstSides() {
    return this.sides.every((side, place) => side === this.firstSides[place]);
  }

  /** Takes the state from the page's URL. */
  restore() {
    const words = ["at", "sides", "flips", "window", "range", "log", "cross"];
    const isFirst = words.every((word) => !address.words.has(word));
    const [at, sides, flips, window] = words.map((word) => address.numbers(word) ?? []);
    const cross = address.numbers("cross");
    const isSide = (side) => side >= 0 && side < this.dims.length - (this.look.samples > 1 ? 1 : 0) && Number.isInteger(side);
    if (this.place && sides.length === 2 && sides[0] !== sides[1] && sides.every(isSide)) this.setSides(sides);
    for (const { number, length } of this.hidden) this.wanted[number] = within(at[number] ?? 0, length);
    for (const { axis, slider } of this.sliders) slider.value = this.wanted[axis.number];
    if (this.place && flips.length === this.dims.length) this.flips = flips.map(Boolean);
    if (this.place && window.length === 4 && window[2] > 0 && window[3] > 0) {
      const [x, y] = window;
      const { width, height } = this.shape;
      this.window = this.inside({ x, y, width: Math.min(window[2], width), height: Math.min(window[3], height) });
    }
    this.range?.restore();
    this.tellFrames();
    if (isFirst) return;
    if (this.place) this.load();
    else this.swap();
    if (cross) this.pointer?.restore(cross);
  }

  // ------------------------------------------------------------ the axes that are not sides

  addFrames() {
    this.sliders = this.hidden.filter(({ length }) => length > 1).map((axis) => {
      const slider = make("input", { type: "range", min: 0, max: axis.length - 1, value: this.wanted[axis.number], className: "frame" });
      slider.setAttribute("data-axis", axis.number);
      const output = make("output", { className: axis.values ? "with-coordinate" : "" });
      slider.addEventListener("input", () => this.turn(axis.number, Number(slider.value)));
      return { axis, slider, output };
    });
    this.frames.replaceChildren(...this.sliders.map(({ axis, slider, output }) =>
      make("label", { className: "wide-control" }, `${axis.label} `, slider, output)));
    this.tellFrames();
    const strip = this.figure.nextElementSibling;
    if (this.hasStrip || !strip?.classList.contains("strip")) return;
    this.hasStrip = true;
    for (const link of strip.querySelectorAll("a")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.turnTo(Number(link.textContent));
      });
    }
  }

  /** Returns the number of the picture with these indices in a stack. */
  numberOf(indices) {
    return this.leading.reduce((number, axis) => number * axis.length + indices[axis.number], 0);
  }

  /** Loads picture `number` of a stack. */
  turnTo(number) {
    let rest = Math.min(Math.max(number, 0), this.count - 1);
    for (const { number: axis, length } of this.leading.toReversed()) {
      if (!this.sides.includes(axis)) this.wanted[axis] = rest % length;
      rest = Math.floor(rest / length);
    }
    this.reload();
  }

  turn(axis, index) {
    this.wanted[axis] = within(index, this.dims[axis]);
    this.reload();
  }

  reload() {
    for (const { axis, slider } of this.sliders) slider.value = this.wanted[axis.number];
    address.set("at", this.wanted, this.wanted.every((index) => index === 0));
    if (this.place) this.load();
    else this.swap();
  }

  /** Shows the indices of the shown picture, not those of a picture that is being loaded. */
  tellFrames() {
    for (const { axis, output } of this.sliders) {
      const index = this.at[axis.number];
      const text = axis.text(index);
      output.value = `${index} of ${axis.length}${text === null ? "" : `: ${text}`}`;
    }
    const link = this.image.closest("a");
    const digits = (text) => String(this.numberOf(this.at)).padStart(text.length, "0");
    if (this.count > 1) link.href = link.href.replace(/\d+(?=\.png$)/, digits);
  }

  /** Shows the server's rendering of another picture of the stack. */
  swap() {
    const wanted = [...this.wanted];
    this.latest.run(async (signal) => {
      const [place, query] = this.image.src.split("?");
      const indices = this.leading.map(({ number }) => wanted[number]);
      const stem = place.slice(0, place.lastIndexOf("%5B"));
      const url = `${stem}${encodeURIComponent(`[${indices.join(",")}]`)}.png${query ? `?${query}` : ""}`;
      await Promise.all([answer(url, signal).then((response) => response.blob()), this.loadFrames(wanted)]);
      const fresh = make("img", { src: url });
      await fresh.decode();
      this.image.src = url;
      this.at = wanted;
      this.tellFrames();
    });
  }

  loadFrames(indices) {
    return Promise.all(this.hidden.map((axis) => axis.load(indices[axis.number])));
  }

  // ------------------------------------------------------------ the canvas and its numbers

  addCanvas() {
    this.canvas = make("canvas", { tabIndex: 0, role: "img", "aria-label": this.image.alt });
    this.canvas.title = "Drag to move, + and − to zoom, Shift and arrows to read values";
    const link = this.image.parentElement;
    link.tabIndex = -1;
    wrap(link, make("div", { className: "overlaid" })).append(this.canvas);
    this.window = this.wholeWindow();
    const ends = (side) => [...this.figure.querySelectorAll(`:scope > .${side} > span`)];
    this.labels = [ends("down"), ends("along")];
    this.texts = this.labels.map((side) => side.map((label) => label.textContent));
    this.whole = null;
    this.close = null;
    const stops = [...this.figure.querySelectorAll(".bar stop")];
    this.look.colours = stops.length ? coloursOf(stops) : null;
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.canvas.addEventListener("pointerenter", () => this.whole ?? this.load());
    this.canvas.addEventListener("focus", () => this.whole ?? this.load());
  }

  wholeWindow() {
    return { x: 0, y: 0, width: this.shape.width, height: this.shape.height };
  }

  isWhole() {
    return this.window.width >= this.shape.width && this.window.height >= this.shape.height;
  }

  /** Returns a text that is equal for two pictures if they show the same elements. */
  keyOf(indices) {
    return [...this.sides, "", ...this.hidden.map(({ number }) => indices[number])].join(",");
  }

  load() {
    const wanted = [...this.wanted];
    this.latest.run(async (signal) => {
      const key = this.keyOf(wanted);
      const isWhole = this.isWhole() || this.whole?.key !== key;
      const slices = slicesOf(isWhole ? this.wholeWindow() : this.window, this.shape);
      const [numbers] = await Promise.all([this.read(wanted, slices, signal), this.loadFrames(wanted)]);
      const patch = { key, slices, numbers };
      this.paint(patch);
      if (isWhole) [this.whole, this.close] = [patch, null];
      else this.close = patch;
      this.at = wanted;
      this.tellFrames();
      this.draw();
      this.pointer.tell();
      if (isWhole) this.range?.tellHistogram();
      if (isWhole && !this.isWhole()) this.load();
    });
  }

  /** Loads the elements in `slices` of the two sides, in rows of the picture. */
  async read(indices, slices, signal) {
    const [down, across] = this.sides;
    const parts = this.dims.map((length, axis) => {
      if (axis === down) return slices[0];
      if (axis === across) return slices[1];
      return this.look.samples > 1 && axis === this.dims.length - 1 ? [0, length] : indices[axis];
    });
    const numbers = await numbersOf(this.place, parts, signal);
    return down < across ? numbers : transposed(numbers);
  }

  paint(patch) {
    const width = countOf(patch.slices[1]);
    const pixels = pixelsOf(patch.numbers, width, this.range?.now ?? this.plainRange, this.look);
    patch.bitmap ??= make("canvas", { width, height: pixels.height });
    patch.bitmap.getContext("2d").putImageData(pixels, 0, 0);
  }

  repaint() {
    for (const patch of [this.whole, this.close]) if (patch) this.paint(patch);
    this.draw();
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
    if (this.pointer.cross) this.markCross(context, this.pointer.cross);
    if (shape.isRight) context.transform(-1, 0, 0, 1, shape.width, 0);
    if (shape.isBelow) context.transform(1, 0, 0, -1, 0, shape.height);
    context.beginPath();
    context.rect(0, 0, shape.width, shape.height);
    context.clip();
    context.globalCompositeOperation = "destination-over";
    for (const patch of [this.close, this.whole]) {
      if (patch?.key !== this.whole.key) continue;
      const [[top, , step], [left]] = patch.slices;
      const { bitmap } = patch;
      context.drawImage(bitmap, left, top, bitmap.width * step, bitmap.height * step);
    }
    this.figure.classList.add("drawn");
    this.tellSides();
  }

  markCross(context, { x, y }) {
    const { window } = this;
    context.fillStyle = "#f0f";
    const [wide, high] = [window.width / this.canvas.width, window.height / this.canvas.height];
    context.fillRect(x + 0.5 - wide, window.y, 2 * wide, window.height);
    context.fillRect(window.x, y + 0.5 - high, window.width, 2 * high);
  }

  /** Labels the sides with the visible part: the coordinate values, or the indices, at the ends. */
  tellSides() {
    const { x, y, width, height } = this.window;
    const first = this.elementAt({ x: x + 0.001, y: y + 0.001 });
    const last = this.elementAt({ x: x + width - 0.001, y: y + height - 0.001 });
    const isFirst = this.isWhole() && this.isFirstSides() && this.flips.every((flip, axis) => flip === this.firstFlips[axis]);
    this.labels.forEach((side, place) => {
      const axis = this.axes[this.sides[place]];
      const ends = [first[place], last[place]];
      if (!ends.every((index) => axis.isLoaded(index))) {
        Promise.all(ends.map((index) => axis.load(index))).then(() => this.tellSides(), () => {});
      }
      const texts = ends.map((index) => axis.text(index) ?? (this.isWhole() ? String(index) : `[${index}]`));
      const name = this.isFirstSides() ? this.texts[place][1] : withUnit(axis.label, axis.unit && `[${axis.unit}]`);
      const labels = isFirst ? this.texts[place] : [texts[0], name, texts[1]];
      side.forEach((label, number) => (label.textContent = labels[number]));
    });
  }

  // ------------------------------------------------------------ the sides and the window

  /** Adds the choice of the two axes that are shown, and of their directions. */
  addSides() {
    const choices = this.axes.slice(0, this.dims.length - (this.look.samples > 1 ? 1 : 0));
    this.selects = [];
    if (choices.length > 2 && this.look.samples === 1) {
      this.selects = ["rows", "columns"].map((name, place) => {
        const select = make("select", { className: name });
        select.append(...choices.map(({ number, label }) => make("option", { value: number, textContent: label })));
        select.value = this.sides[place];
        select.addEventListener("change", () => this.choose(place, Number(select.value)));
        this.controls.append(make("label", {}, `${name} `, select));
        return select;
      });
    }
    this.controls.append(
      button("↕", "flip the picture upside down", () => this.flip(0)),
      button("↔", "flip the picture from left to right", () => this.flip(1)),
    );
  }

  choose(place, axis) {
    const sides = [...this.sides];
    if (sides[1 - place] === axis) sides[1 - place] = sides[place];
    sides[place] = axis;
    this.setSides(sides);
    this.load();
  }

  setSides(sides) {
    this.sides = sides;
    this.whole = null;
    this.close = null;
    this.pointer.clear();
    this.window = this.wholeWindow();
    this.selects.forEach((select, place) => (select.value = sides[place]));
    address.set("sides", sides, this.isFirstSides());
    address.set("window", [], true);
    const { width, height } = this.shape;
    this.image.style.aspectRatio = `${width} / ${height}`;
    this.figure.style.setProperty("--w", Math.min(Math.max((20 * width) / height, 1), 60));
    this.addFrames();
  }

  flip(place) {
    const axis = this.sides[place];
    this.flips[axis] = !this.flips[axis];
    address.set("flips", this.flips.map(Number), this.flips.every((flip, number) => flip === this.firstFlips[number]));
    this.pointer.clear();
    const { window, shape } = this;
    const { x, y, width, height } = window;
    this.moveTo(place === 0 ? { ...window, y: shape.height - y - height } : { ...window, x: shape.width - x - width });
  }

  addZoom() {
    this.controls.append(
      button("+", "zoom in", () => this.zoom(2)),
      button("−", "zoom out", () => this.zoom(0.5)),
      button("whole", "the whole picture", () => this.moveTo(this.wholeWindow())),
    );
  }

  /** Zooms in by `factor` at a position. */
  zoom(factor, place = this.pointer.middle()) {
    const { window, shape } = this;
    const width = Math.min(Math.max(window.width / factor, Math.min(2, shape.width)), shape.width);
    const height = Math.min(Math.max(window.height / factor, Math.min(2, shape.height)), shape.height);
    const x = place.x - ((place.x - window.x) / window.width) * width;
    const y = place.y - ((place.y - window.y) / window.height) * height;
    this.moveTo({ x, y, width, height });
  }

  /** Returns a window that is moved into the picture, in numbers that fit into the page's URL. */
  inside(window) {
    const rounded = (number) => Math.round(number * 1000) / 1000;
    const [width, height] = [rounded(window.width), rounded(window.height)];
    const moved = (begin, length, all) => rounded(Math.min(Math.max(begin, 0), all - length));
    return { x: moved(window.x, width, this.shape.width), y: moved(window.y, height, this.shape.height), width, height };
  }

  moveTo(window) {
    this.window = this.inside(window);
    const { x, y, width, height } = this.window;
    address.set("window", [x, y, width, height], this.isWhole());
    this.draw();
    this.load();
  }

  press(event) {
    const { key, shiftKey } = event;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const number = this.numberOf(this.wanted);
    if (shiftKey && key in ways && this.place) this.pointer.moveCross(ways[key]);
    else if (key === "ArrowLeft" && this.sliders.length) this.turnTo(number - 1);
    else if (key === "ArrowRight" && this.sliders.length) this.turnTo(number + 1);
    else if (key === "+" && this.place) this.zoom(2);
    else if (key === "-" && this.place) this.zoom(0.5);
    else if (key === "0" && this.place) this.moveTo(this.wholeWindow());
    else if (key === "Enter" && this.pointer?.cross) this.profiles.show(this.elementAt(this.pointer.cross));
    else return;
    event.preventDefault();
  }

  // ------------------------------------------------------------ elements

  /** Returns the element at a position: row and column. */
  elementAt({ x, y }) {
    const { height, width, isBelow, isRight } = this.shape;
    const [row, column] = [Math.floor(y), Math.floor(x)];
    return [isBelow ? height - 1 - row : row, isRight ? width - 1 - column : column];
  }

  /** Returns the indices of an element of the shown picture along all axes. */
  indicesOf([row, column]) {
    const count = this.dims.length - (this.look.samples > 1 ? 1 : 0);
    const [down, across] = this.sides;
    return this.at.slice(0, count).map((index, axis) => (axis === down ? row : axis === across ? column : index));
  }

  /** Returns the most detailed loaded numbers at a position. */
  patchAt(place) {
    const element = this.elementAt(place);
    const key = this.keyOf(this.at);
    const has = (patch) =>
      patch?.key === key &&
      patch.slices.every(([begin, end], axis) => element[axis] >= begin && element[axis] < end);
    return [this.close, this.whole].find(has);
  }
}
