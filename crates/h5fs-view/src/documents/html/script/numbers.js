// Parts of an array, read from its NumPy file (numpy.lib.format).

/** Fetches `url` in the state of the file that the page shows. Throws the server's message if the response is an error. */
async function answer(url, signal) {
  let response;
  for (let attempt = 0; ; attempt += 1) {
    response = await fetch(url, { signal, headers: file.fields() });
    if (response.status !== 503 || attempt === RETRIES) break;
    await pause(RETRY);
  }
  if (response.ok) return response;
  if (response.status === 412 || (response.status === 404 && (await file.hasGone()))) {
    file.tellChanged();
    throw new Changed();
  }
  throw new Error((await response.text()).trim() || response.statusText);
}

/** Returns the URL of a part of `place`. Each of `axes` is an index, or a list of start, end and step. */
function partOf(place, axes) {
  const selector = axes.map((axis) => (Array.isArray(axis) ? axis.join(":") : axis)).join(",");
  const dot = place.lastIndexOf(".");
  return `${place.slice(0, dot)}${encodeURIComponent(`[${selector}]`)}${place.slice(dot)}`;
}

/** Loads the numbers of a part: a typed array, with NumPy's shape and type. */
async function numbersOf(place, axes, signal) {
  const response = await answer(partOf(place, axes), signal);
  const numbers = numbersIn(await response.arrayBuffer());
  const wanted = axes.filter(Array.isArray).map(countOf);
  if (wanted.some((count, axis) => count !== numbers.shape[axis])) {
    file.tellChanged();
    throw new Changed();
  }
  return numbers;
}

/** Returns the number of elements in a slice. */
function countOf([begin, end, step = 1]) {
  return Math.ceil((end - begin) / step);
}

const TYPES = {
  b1: Uint8Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, u8: BigUint64Array,
  i1: Int8Array, i2: Int16Array, i4: Int32Array, i8: BigInt64Array,
  f2: Uint16Array, f4: Float32Array, f8: Float64Array, M8: BigInt64Array,
};

/** Parses the header of a NumPy file. Returns the type, the shape, and the offset of the elements. */
function headerIn(buffer) {
  const view = new DataView(buffer);
  const isFirst = view.getUint8(6) === 1;
  const length = isFirst ? view.getUint16(8, true) : view.getUint32(8, true);
  const begin = isFirst ? 10 : 12;
  const header = new TextDecoder().decode(new Uint8Array(buffer, begin, Math.min(length, buffer.byteLength - begin)));
  const [, order, type, , unit] = /'descr': '([<>|])(\w\d+)(\[(\w+)\])?'/.exec(header) ?? [];
  const [, shape] = /'shape': \(([^)]*)\)/.exec(header) ?? [];
  if (shape === undefined) throw new Error("no NumPy file");
  return { order, type, unit, shape: shape.split(",").filter((text) => text.trim()).map(Number), begin: begin + length };
}

function numbersIn(buffer) {
  const { order, type, unit, shape, begin } = headerIn(buffer);
  if (type?.startsWith("U")) return { shape, values: textsIn(buffer, begin, Number(type.slice(1))), type: "U" };
  if (!(type in TYPES)) throw new Error("no numbers that can be shown");
  const size = TYPES[type].BYTES_PER_ELEMENT;
  const bytes = new Uint8Array(buffer.slice(begin));
  if (order === ">") {
    for (let at = 0; at < bytes.length; at += size) bytes.subarray(at, at + size).reverse();
  }
  const stored = new TYPES[type](bytes.buffer, 0, Math.floor(bytes.length / size));
  return { shape, values: type === "f2" ? Float32Array.from(stored, half) : stored, type, unit };
}

/** Decodes texts of `length` characters of four bytes each. */
function textsIn(buffer, begin, length) {
  const view = new DataView(buffer, begin);
  const texts = [];
  for (let at = 0; at + 4 * length <= view.byteLength; at += 4 * length) {
    let text = "";
    for (let place = 0; place < length; place += 1) {
      const code = view.getUint32(at + 4 * place, true);
      if (code > 0 && code <= 0x10ffff) text += String.fromCodePoint(code);
    }
    texts.push(text);
  }
  return texts;
}

/** Decodes the bits of a half-precision number. */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Returns the shortest text that restores the value in its type. */
function textOf({ values, type, unit }, place) {
  const value = values[place];
  if (type === "M8") return timeOf(value, unit);
  if (type === "b1") return value ? "true" : "false";
  if (type !== "f4" || !Number.isFinite(value)) return String(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const rounded = Number(value.toPrecision(digits));
    if (Math.fround(rounded) === value) return String(rounded);
  }
  return String(Number(value.toPrecision(9)));
}

/** Decimal digits of a second for each time unit of NumPy. */
const DIGITS = { s: 0, ms: 3, us: 6, ns: 9 };

/** Formats a time, given in units since 1970, in ISO 8601. */
function timeOf(value, unit) {
  if (value === -(2n ** 63n)) return "missing";
  const digits = DIGITS[unit];
  if (digits === undefined) return `${value} ${unit}`;
  const whole = 10n ** BigInt(digits);
  const rest = ((value % whole) + whole) % whole;
  const seconds = new Date(Number((value - rest) / whole) * 1000);
  if (Number.isNaN(seconds.getTime())) return `${value} ${unit}`;
  const fraction = digits ? `.${String(rest).padStart(digits, "0")}`.replace(/\.?0+$/, "") : "";
  return seconds.toISOString().replace(".000Z", fraction);
}

/** Numbers in one request. */
const BLOCK = 65536;

/** Maximum number of cached blocks. */
const BLOCKS = 8;

/** The numbers of one file, loaded in blocks. */
class Blocks {
  constructor(place, count) {
    this.place = place;
    this.count = count;
    this.blocks = new Map();
  }

  async block(number) {
    const known = this.blocks.get(number);
    if (known) return known;
    const end = Math.min((number + 1) * BLOCK, this.count);
    const block = await numbersOf(this.place, [[number * BLOCK, end]]);
    if (this.blocks.size >= BLOCKS) this.blocks.delete(this.blocks.keys().next().value);
    this.blocks.set(number, block);
    return block;
  }

  /** Loads the block that contains a number. Returns the block, and the number's position in it. */
  async at(index) {
    const number = Math.floor(index / BLOCK);
    return [await this.block(number), index - number * BLOCK];
  }

  async number(index) {
    const [block, place] = await this.at(index);
    return Number(block.values[place]);
  }

  async text(index) {
    return textOf(...(await this.at(index)));
  }

  /** Returns the text of a number if its block is loaded. */
  loadedText(index) {
    const number = Math.floor(index / BLOCK);
    const block = this.blocks.get(number);
    return block && textOf(block, index - number * BLOCK);
  }
}
