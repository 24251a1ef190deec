// The value at the pointer of a picture: mouse, touch and keyboard.

class Pointer {
  constructor(picture) {
    this.picture = picture;
    this.readout = make("output", { className: "value", "aria-live": "polite" });
    this.cross = null;
    this.place = null;
    const { canvas } = picture;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("dblclick", (event) => picture.zoom(2, this.placeOf(event)));
    canvas.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    canvas.addEventListener("keydown", (event) => picture.press(event));
    canvas.addEventListener("touchstart", (event) => this.pinch(event), { passive: false });
  }

  clear() {
    this.cross = null;
    this.place = null;
    this.readout.value = "";
    address.set("cross", [], true);
    this.picture.profiles?.hide();
  }

  /** Returns the position of a pointer in the picture. */
  placeOf(event) {
    const box = this.picture.canvas.getBoundingClientRect();
    const { window } = this.picture;
    return {
      x: window.x + ((event.clientX - box.left) / box.width) * window.width,
      y: window.y + ((event.clientY - box.top) / box.height) * window.height,
    };
  }

  point(event) {
    if (event.buttons || event.pointerType === "touch") return;
    // The profiles are those of the cross, so the cross stays.
    this.place = this.placeOf(event);
    this.tell();
  }

  /** Reads the value of a clicked or tapped element, and draws the profiles through it. */
  click(event) {
    if (this.isDragged) return;
    const { x, y } = this.placeOf(event);
    this.setCross(Math.floor(x), Math.floor(y));
    this.picture.draw();
    this.picture.profiles.show(this.picture.elementAt(this.cross));
    if (!this.picture.whole) this.picture.load();
    this.tell();
  }

  setCross(x, y) {
    const { width, height } = this.picture.shape;
    this.cross = { x: within(x, width), y: within(y, height) };
    this.place = this.cross;
    address.set("cross", this.picture.elementAt(this.cross));
  }

  /** Takes the cross, a row and a column, from the page's URL. */
  restore([row, column]) {
    if (column === undefined) return;
    const { height, width, isBelow, isRight } = this.picture.shape;
    this.setCross(isRight ? width - 1 - column : column, isBelow ? height - 1 - row : row);
    this.picture.profiles.show(this.picture.elementAt(this.cross));
  }

  grab(event) {
    this.isDragged = false;
    if (event.button !== 0 || event.pointerType === "touch") return;
    const { picture } = this;
    const { canvas } = picture;
    canvas.focus();
    canvas.setPointerCapture(event.pointerId);
    let [x, y] = [event.clientX, event.clientY];
    const box = canvas.getBoundingClientRect();
    const drag = (moved) => {
      const { window } = picture;
      const right = ((x - moved.clientX) / box.width) * window.width;
      const down = ((y - moved.clientY) / box.height) * window.height;
      if (Math.hypot(x - moved.clientX, y - moved.clientY) < 3 && !this.isDragged) return;
      this.isDragged = true;
      [x, y] = [moved.clientX, moved.clientY];
      picture.moveTo({ ...window, x: window.x + right, y: window.y + down });
    };
    canvas.addEventListener("pointermove", drag);
    canvas.addEventListener("lostpointercapture", () => canvas.removeEventListener("pointermove", drag), { once: true });
  }

  roll(event) {
    const { picture } = this;
    if (!event.ctrlKey && document.activeElement !== picture.canvas) return;
    event.preventDefault();
    picture.zoom(event.deltaY < 0 ? 1.25 : 0.8, this.placeOf(event));
  }

  /** Zooms and moves the picture with two fingers. One finger scrolls the page. */
  pinch(event) {
    if (event.touches.length !== 2) return;
    event.preventDefault();
    const { picture } = this;
    const { canvas, window } = picture;
    const box = canvas.getBoundingClientRect();
    const middle = ([one, other]) => ({ clientX: (one.clientX + other.clientX) / 2, clientY: (one.clientY + other.clientY) / 2 });
    const apart = ([one, other]) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const [first, distance] = [this.placeOf(middle(event.touches)), apart(event.touches)];
    const move = (moved) => {
      if (moved.touches.length !== 2) return;
      moved.preventDefault();
      const factor = apart(moved.touches) / Math.max(distance, 1);
      const { shape } = picture;
      const width = Math.min(Math.max(window.width / factor, Math.min(2, shape.width)), shape.width);
      const height = Math.min(Math.max(window.height / factor, Math.min(2, shape.height)), shape.height);
      const { clientX, clientY } = middle(moved.touches);
      // The element that was between the fingers stays there.
      const x = first.x - ((clientX - box.left) / box.width) * width;
      const y = first.y - ((clientY - box.top) / box.height) * height;
      picture.moveTo({ x, y, width, height });
    };
    const end = () => {
      canvas.removeEventListener("touchmove", move);
      canvas.removeEventListener("touchend", end);
      canvas.removeEventListener("touchcancel", end);
    };
    canvas.addEventListener("touchmove", move, { passive: false });
    canvas.addEventListener("touchend", end);
    canvas.addEventListener("touchcancel", end);
  }

  middle() {
    const { x, y, width, height } = this.picture.window;
    return this.cross ?? { x: x + width / 2, y: y + height / 2 };
  }

  moveCross([right, down]) {
    const { picture } = this;
    const from = this.cross ?? this.middle();
    // Move to the next loaded number. If only every n-th number is loaded, skip the elements between.
    const step = picture.patchAt(from)?.slices[0][2] ?? 1;
    this.setCross(from.x + (this.cross ? right * step : 0), from.y + (this.cross ? down * step : 0));
    const { x, y } = this.cross;
    const { window } = picture;
    const isSeen = x >= window.x && x < window.x + window.width && y >= window.y && y < window.y + window.height;
    if (isSeen) picture.draw();
    else picture.moveTo({ ...window, x: x - window.width / 2, y: y - window.height / 2 });
    this.tell();
  }

  /** Shows the indices, the value and the coordinate values of the element at the pointer. */
  tell() {
    const { picture } = this;
    const patch = this.place && picture.patchAt(this.place);
    if (!patch) return;
    const places = picture.elementAt(this.place).map((index, axis) => {
      const [begin, , step] = patch.slices[axis];
      return Math.floor((index - begin) / step);
    });
    const element = places.map((place, axis) => patch.slices[axis][0] + place * patch.slices[axis][2]);
    const { samples, missing } = picture.look;
    const first = (places[0] * countOf(patch.slices[1]) + places[1]) * samples;
    const texts = [];
    for (let part = 0; part < samples; part += 1) {
      const isMissing = samples === 1 && Number(patch.numbers.values[first]) === missing;
      texts.push(isMissing ? "missing" : textOf(patch.numbers, first + part));
    }
    const indices = picture.indicesOf(element);
    const value = samples === 1 && texts[0] !== "missing" ? withUnit(texts[0], picture.unit) : texts.join(", ");
    const axes = picture.axes.slice(0, indices.length);
    const where = axes.map((axis) => axis.text(indices[axis.number])).filter((text) => text !== null);
    this.readout.value = `[${indices.join(", ")}] = ${value}${where.length ? ` at ${where.join(", ")}` : ""}`;
    const missed = axes.filter((axis) => !axis.isLoaded(indices[axis.number]));
    if (!missed.length) return;
    Promise.all(missed.map((axis) => axis.load(indices[axis.number]))).then(() => this.tell(), () => {});
  }
}
