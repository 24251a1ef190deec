// The numbers along each axis through the clicked element of a picture.

/** Maximum numbers of a profile. Of a longer axis, every n-th number is loaded. */
const LONGEST = 16384;

/** The width and the height of a profile's drawing. */
const [PROFILE_WIDTH, PROFILE_HEIGHT] = [400, 100];

/** A small line plot with the value at the pointer. */
class Profile {
  constructor(choose) {
    const svg = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
    this.drawing = svg("svg");
    this.drawing.setAttribute("viewBox", `0 0 ${PROFILE_WIDTH} ${PROFILE_HEIGHT}`);
    this.drawing.setAttribute("preserveAspectRatio", "none");
    this.path = svg("path");
    this.path.setAttribute("class", "line");
    this.drawing.append(this.path);
    this.mark = make("div", { className: "mark" });
    this.box = make("div", { className: "overlaid", tabIndex: 0, role: "group" }, this.drawing, this.mark);
    this.title = make("div", { className: "label" });
    this.readout = make("output", { className: "value" });
    this.element = make("div", { className: "profile" }, this.title, this.box, this.readout);
    this.box.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.tell(this.placeOf(event)));
    this.box.addEventListener("pointerleave", () => this.tell(this.begin));
    this.box.addEventListener("click", (event) => choose(this.axis, this.indexAt(this.placeOf(event))));
    this.box.addEventListener("keydown", (event) => this.press(event));
  }

  /** Draws the numbers along an axis. `indices` are those of the clicked element. */
  set(axis, indices, { numbers, first, step, missing, unit }) {
    Object.assign(this, { axis, indices, numbers, first, step, missing, unit });
    const { values } = numbers;
    this.count = values.length;
    this.begin = Math.floor(indices[axis.number] / step);
    const number = (place) => (this.isMissing(place) ? NaN : Number(values[place]));
    let [least, most] = [Infinity, -Infinity];
    for (let place = 0; place < this.count; place += 1) {
      const value = number(place);
      if (!Number.isFinite(value)) continue;
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
    let [text, isBroken] = ["", true];
    for (let place = 0; place < this.count; place += 1) {
      const value = number(place);
      if (!Number.isFinite(value)) {
        isBroken = true;
        continue;
      }
      const x = (PROFILE_WIDTH * place) / Math.max(this.count - 1, 1);
      const y = most > least ? PROFILE_HEIGHT * (1 - (value - least) / (most - least)) : PROFILE_HEIGHT / 2;
      const point = `${x.toFixed(1)} ${y.toFixed(1)}`;
      // A single number between gaps is a dot.
      text += isBroken ? `M${point}L${point}` : `L${point}`;
      isBroken = false;
    }
    this.path.setAttribute("d", text);
    const part = step > 1 ? `, every ${step}th number` : "";
    const range = least <= most ? `from ${short(least)} to ${short(most)}` : "no finite numbers";
    this.title.textContent = `along ${axis.label}: ${range}${part}`;
    this.box.setAttribute("aria-label", `${this.title.textContent}; arrows to read values`);
    this.tell(this.begin);
  }

  isMissing(place) {
    return Number(this.numbers.values[place]) === this.missing;
  }

  indexAt(place) {
    return this.first + place * this.step;
  }

  placeOf(event) {
    const box = this.drawing.getBoundingClientRect();
    return within(Math.round(((event.clientX - box.left) / box.width) * (this.count - 1)), this.count);
  }

  press(event) {
    const ways = { ArrowRight: this.place + 1, ArrowLeft: this.place - 1, Home: 0, End: this.count - 1 };
    if (!(event.key in ways)) return;
    event.preventDefault();
    this.tell(within(ways[event.key], this.count));
  }

  tell(place) {
    this.place = place;
    this.mark.style.left = `${(100 * place) / Math.max(this.count - 1, 1)}%`;
    const indices = [...this.indices];
    const index = this.indexAt(place);
    indices[this.axis.number] = index;
    const value = this.isMissing(place) ? "missing" : withUnit(textOf(this.numbers, place), this.unit);
    const where = this.axis.text(index);
    this.readout.value = `[${indices.join(", ")}] = ${value}${where === null ? "" : ` at ${where}`}`;
    if (!this.axis.isLoaded(index)) this.axis.load(index).then(() => this.place === place && this.tell(place), () => {});
  }
}

/** The profiles along all axes through one element of a picture. */
class Profiles {
  constructor(picture) {
    this.picture = picture;
    this.list = [];
    this.box = make("div", { className: "profiles", hidden: true });
    this.problem = complaint();
    this.latest = new Latest(this.problem.say, this.box, picture.closed);
    picture.figure.after(this.box);
  }

  hide() {
    this.box.hidden = true;
  }

  /** Loads and draws the profiles through an element, which is a row and a column of the shown picture. */
  show(element) {
    const { picture } = this;
    if (picture.look.samples > 1) return;
    this.latest.run(async (signal) => {
      const indices = picture.indicesOf(element);
      for (const axis of picture.hidden) indices[axis.number] = picture.wanted[axis.number];
      const [down, across] = picture.sides.map((side) => picture.axes[side]);
      const axes = [across, down, ...picture.hidden].filter(({ length }) => length > 1);
      const read = async (axis) => {
        const step = Math.ceil(axis.length / LONGEST);
        // The clicked element is among the loaded ones.
        const first = indices[axis.number] % step;
        const parts = indices.map((index, number) => (number === axis.number ? [first, axis.length, step] : index));
        return { numbers: await numbersOf(picture.place, parts, signal), first, step };
      };
      const loaded = [];
      for (const axis of axes) loaded.push(await read(axis));
      while (this.list.length < axes.length) this.list.push(new Profile((axis, index) => this.choose(axis, index)));
      axes.forEach((axis, number) => {
        this.list[number].set(axis, indices, { ...loaded[number], missing: picture.look.missing, unit: picture.unit });
      });
      this.box.replaceChildren(...this.list.slice(0, axes.length).map((profile) => profile.element), this.problem.line);
      this.box.hidden = false;
    });
  }

  /** Shows the picture at an index of an axis, or moves the cross to it. */
  choose(axis, index) {
    const { picture } = this;
    const { pointer } = picture;
    const place = picture.sides.indexOf(axis.number);
    if (place < 0) {
      picture.turn(axis.number, index);
    } else {
      const { height, width, isBelow, isRight } = picture.shape;
      const [row, column] = picture.elementAt(pointer.cross);
      const [y, x] = place === 0 ? [index, column] : [row, index];
      pointer.setCross(isRight ? width - 1 - x : x, isBelow ? height - 1 - y : y);
      picture.draw();
      pointer.tell();
    }
    this.show(picture.elementAt(pointer.cross));
  }
}
