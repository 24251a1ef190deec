// Parts of an array, read from its NumPy file (numpy.lib.format).

/** Fetches `url`. Throws the server's message if the response is an error. */
async function answer(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  return response;
}

/** Returns the URL of a part of `file`. Each of `axes` is an index, or a list of start, end and step. */
function partOf(file, axes) {
  const selector = axes.map((axis) => (Array.isArray(axis) ? axis.join(":") : axis)).join(",");
  const dot = file.lastIndexOf(".");
  return `${file.slice(0, dot)}${encodeURIComponent(`[${selector}]`)}${file.slice(dot)}`;
}

/** Loads the numbers of a part: a typed array, with NumPy's shape and type. */
async function numbersOf(file, axes) {
  const response = await answer(partOf(file, axes));
  return numbersIn(await response.arrayBuffer());
}

const TYPES = {
  b1: Uint8Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, u8: BigUint64Array,
  i1: Int8Array, i2: Int16Array, i4: Int32Array, i8: BigInt64Array,
  f2: Uint16Array, f4: Float32Array, f8: Float64Array, M8: BigInt64Array,
};

function numbersIn(buffer) {
  const view = new DataView(buffer);
  const isFirst = view.getUint8(6) === 1;
  const length = isFirst ? view.getUint16(8, true) : view.getUint32(8, true);
  const begin = isFirst ? 10 : 12;
  const header = new TextDecoder().decode(new Uint8Array(buffer, begin, length));
  const [, order, type, , unit] = /'descr': '([<>|])(\w\d+)(\[(\w+)\])?'/.exec(header) ?? [];
  const [, shape] = /'shape': \(([^)]*)\)/.exec(header) ?? [];
  if (!(type in TYPES) || shape === undefined) throw new Error("no numbers that can be shown");
  const size = TYPES[type].BYTES_PER_ELEMENT;
  const bytes = new Uint8Array(buffer.slice(begin + length));
  if (order === ">") {
    for (let at = 0; at < bytes.length; at += size) bytes.subarray(at, at + size).reverse();
  }
  const stored = new TYPES[type](bytes.buffer, 0, Math.floor(bytes.length / size));
  return {
    shape: shape.split(",").filter((text) => text.trim()).map(Number),
    values: type === "f2" ? Float32Array.from(stored, half) : stored,
    type,
    unit,
  };
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
